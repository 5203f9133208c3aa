"""``python -m missratio``."""

from missratio.app.cli import main

main()
