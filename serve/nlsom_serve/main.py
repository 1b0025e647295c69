"""Entry point of the command line. Imports lazily, so that Ctrl-C while importing shows no traceback."""

import os
import sys


def main() -> None:
    """Runs the command line, `nlsom`."""
    try:
        if not os.environ.get("COLUMNS", "80").strip("0"):
            del os.environ["COLUMNS"]  # 0 means "unknown", but rich would print in a width of 0
        from nlsom_serve.cli import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
