"""``python -m missratio``, and the command ``missratio``."""

import signal


def main() -> None:
    """Run the command line; an interrupt while it loads just ends it."""
    # Python's own handler would end an import with a traceback. Commands have another.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from missratio.app.cli import main as run

    run()


if __name__ == "__main__":
    main()
