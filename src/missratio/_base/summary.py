"""Results as a table that prints in a terminal and renders in a notebook."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH = 78
# Longer tables end with how many rows more there are.
MOST_ROWS = 60


@dataclass(frozen=True, repr=False)
class Summary:
    """A title, facts in pairs, a table and notes.

    Prints as text of 78 columns, and renders as HTML in a notebook.

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
        heavy, light, half = "=" * WIDTH, "-" * WIDTH, WIDTH // 2 - 1
        lines = [self.title.center(WIDTH).rstrip(), heavy]
        # Facts in two columns, where they are short enough.
        alone = False
        for name, value in self.facts:
            cell = f"{name}: {value}"
            short = len(cell) <= half
            if alone and short:
                lines[-1] = f"{lines[-1].ljust(half + 2)}{cell}"
            else:
                lines += textwrap.wrap(cell, WIDTH, subsequent_indent="  ")
            alone = short and not alone
        if self.rows:
            table = [self.header, *self.rows[:MOST_ROWS]]
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            # Names give way to figures where both don't fit.
            most = WIDTH - sum(widths[1:]) - 2 * len(widths)
            widths[0] = max(8, min(widths[0], most))
            set_out = []
            for first, *cells in table:
                cut = first[: widths[0] - 1] + "…" if len(first) > widths[0] else first
                figures = [c.rjust(w) for c, w in zip(cells, widths[1:], strict=True)]
                set_out.append("  ".join([cut.ljust(widths[0]), *figures]).rstrip())
            lines += [light] if self.facts else []
            lines += [set_out[0], light, *set_out[1:], *self._more]
        lines.append(heavy)
        for note in self.notes:
            lines += textwrap.wrap(note, WIDTH)
        return "\n".join(lines)

    def __repr__(self) -> str:
        """The summary as text."""
        return str(self)

    def _repr_html_(self) -> str:
        """The summary as HTML, with tables that a screen reader understands."""

        def lines(rows: tuple[tuple[str, ...], ...]) -> str:
            return "".join(
                f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
                + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
                + "</tr>"
                for name, *cells in rows
            )

        facts, body = lines(self.facts), lines(self.rows[:MOST_ROWS])
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.header)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in (*self._more, *self.notes))
        return (
            f"<div><table><caption>{escape(self.title)}</caption><tbody>{facts}</tbody>"
            f"</table>{table if self.rows else ''}{notes}</div>"
        )

    @property
    def _more(self) -> list[str]:
        more = len(self.rows) - MOST_ROWS
        return [f"… and {more} more"] if more > 0 else []


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
