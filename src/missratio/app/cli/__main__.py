"""``python -m missratio.app.cli``."""

from missratio.app.cli import main

main()
