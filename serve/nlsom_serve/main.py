"""Entry point of the command line. Imports lazily, so that Ctrl-C while importing shows no traceback."""

import sys


def main() -> None:
    """Runs the command line, `nlsom`."""
    try:
        from nlsom_serve.cli import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
