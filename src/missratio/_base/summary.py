"""Results as a table that prints in a terminal, and so in a notebook."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

WIDTH = 78
# Longer tables end with how many rows more there are.
MOST_ROWS = 60


@dataclass(frozen=True, repr=False)
class Summary:
    """A title, facts in pairs, a table and notes.

    Prints as text of 78 columns.

    Parameters
    ----------
    title : str
    facts : tuple of (str, str)
        Names with their values.
    header : tuple of str
        Of the table; its first column is aligned left, the others right.
    rows : tuple of tuples of str
    notes : tuple of str
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The summary as text."""
        heavy, light = "=" * WIDTH, "-" * WIDTH
        lines = [self.title.center(WIDTH).rstrip(), heavy]
        for name, value in self.facts:
            lines += textwrap.wrap(f"{name}: {value}", WIDTH, subsequent_indent="  ")
        if self.rows:
            table = [self.header, *self.rows[:MOST_ROWS]]
            first, *widths = (
                max(map(len, cells)) for cells in zip(*table, strict=True)
            )
            # Names give way to figures where both don't fit.
            first = max(8, min(first, WIDTH - sum(widths) - 2 * len(widths)))
            lines.append(light)
            for name, *cells in table:
                cut = f"{name[: first - 1]}…" if len(name) > first else name
                figures = (c.rjust(w) for c, w in zip(cells, widths, strict=True))
                lines.append("  ".join([cut.ljust(first), *figures]).rstrip())
            more = len(self.rows) - MOST_ROWS
            lines += [f"… and {more} more"] * (more > 0)
        lines.append(heavy)
        for note in self.notes:
            lines += textwrap.wrap(note, WIDTH)
        return "\n".join(lines)

    __repr__ = __str__


def figure(value: Any, digits: int = 4) -> str:
    """A number with so many significant digits; nothing for what isn't known.

    Examples
    --------
    >>> figure(0.123456), figure(float("nan")), figure(12)
    ('0.1235', '–', '12')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"
