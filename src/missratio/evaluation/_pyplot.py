"""Matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any


def pyplot(display: Any) -> Any:
    """What a display draws with, or how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__} draws with matplotlib: pip install "
            "'missratio[report]'."
        ) from error
    return plt
