"""`python -m nlsom_serve.cli` is `nlsom`."""

from nlsom_serve.cli import main

main()
