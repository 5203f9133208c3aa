"""Import missratio from src where it isn't installed: import this module first."""

from __future__ import annotations

import importlib.metadata as metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
_version = metadata.version


def version(name: str) -> str:
    try:
        return _version(name)
    except metadata.PackageNotFoundError:
        if name == "missratio":
            return "0"
        raise


metadata.version = version
