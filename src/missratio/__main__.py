"""``python -m missratio``, and the command ``missratio``."""

import sys


def main() -> None:
    """Run the command line; an interrupt while it loads is no fault."""
    try:
        from missratio.app.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted: nothing was written.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
