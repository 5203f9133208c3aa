"""Shares and levels as they are written on the command line."""

from __future__ import annotations

from typing import Any


def read_share(text: Any) -> float:
    """A share, as a number or in percent."""
    words = str(text).strip().replace("\u00a0", " ")
    try:
        if words.endswith("%"):
            return float(words[:-1].strip().replace(",", ".")) / 100.0
        return float(words.replace(",", "."))
    except ValueError:
        raise ValueError(f"{text!r} is not a share: write 0.05 or 5%.") from None


def _level(text: str, option: str) -> float:
    try:
        return read_share(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def read_levels(
    words: list[str], option: str = "--alpha"
) -> tuple[float | None, dict[str, float]]:
    """One level, or those of several classes by their labels, or of groups."""
    named = [word.rpartition("=") for word in words if "=" in word]
    if not named:
        if len(words) > 1:
            raise ValueError(
                f"{option} was given {len(words)} times. Name a class with each, such "
                f"as {option} LABEL={words[0]}."
            )
        return _level(words[0], option), {}
    if len(named) < len(words):
        raise ValueError(
            f"{option} LABEL=SHARE and {option} SHARE don't go together: name a class "
            "with each."
        )
    levels = {label.strip(): _level(share, option) for label, _, share in named}
    if len(levels) < len(named) or "" in levels:
        raise ValueError(
            f"{option} LABEL=SHARE names each class once: got "
            f"{', '.join(label.strip() or repr('') for label, _, _ in named)}."
        )
    return None, levels
