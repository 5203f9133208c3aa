"""``python -m missratio``."""

from missratio.cli import main

main()
