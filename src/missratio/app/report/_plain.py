"""Numbers and names as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_DIGITS = 7


def plain(value: Any) -> Any:
    """Lists, dicts, strings and numbers only, as JSON has them.

    Numbers keep seven digits, which is more than any of them is worth; one that isn't
    finite is None.
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(entry) for entry in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return float(f"{number:.{_DIGITS}g}") if math.isfinite(number) else None
    return str(value)
