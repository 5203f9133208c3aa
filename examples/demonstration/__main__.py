"""``python -m demonstration``."""

import sys

from demonstration import main

sys.exit(main())
