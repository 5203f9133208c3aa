"""``python -m missratio.cli``."""

from missratio.cli import main

main()
