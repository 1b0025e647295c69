"""`python -m nlsom_serve` is `nlsom`."""

from nlsom_serve.main import main

main()
