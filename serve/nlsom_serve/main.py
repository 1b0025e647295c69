"""Where the command begins. It imports nothing first, so that an interrupt is never a traceback."""

import os
import sys


def main() -> None:
    """Runs the command line, `nlsom`."""
    try:
        if not os.environ.get("COLUMNS", "80").strip("0"):
            del os.environ["COLUMNS"]  # "0" is "not known"; rich would take it at its word and print nothing
        from nlsom_serve.cli import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
