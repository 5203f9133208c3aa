"""What commands that draw have in common."""

from __future__ import annotations


def check_drawing() -> None:
    """Refuse to draw without matplotlib, before anything else is done."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Figures need matplotlib. Install it by pip install "missratio[report]".'
        )
