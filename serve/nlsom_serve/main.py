"""Where the command begins. It imports nothing first, so that an interrupt is never a traceback."""

import sys


def main() -> None:
    """Runs the command line, `nlsom`."""
    try:
        from nlsom_serve.cli import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
