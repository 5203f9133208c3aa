"""``python -m missratio.demo``."""

import sys

from missratio.demo import main

sys.exit(main())
