"""A report: plain data, and pages made of it."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Self

FORMAT = 4
TWO_CLASSES, SEVERAL_CLASSES, GROUPS = "two classes", "several classes", "groups"
FRAME_HEIGHT = 900


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """What a certified classifier guarantees, and what that rests on.

    Made by `build_report`, or from the data of another report. Every page is rendered
    from `data` alone, so that a report can be stored beside its model and shown where
    neither the model nor its rows are.

    Parameters
    ----------
    data : dict
        Lists, dicts, strings and numbers only, as JSON has them.

    Examples
    --------
    >>> import missratio as mr
    >>> report = mr.build_report(classifier, X, y)  # doctest: +SKIP
    >>> Path("report.html").write_text(report.html())  # doctest: +SKIP
    """

    data: dict[str, Any]

    def __post_init__(self) -> None:
        found = self.data.get("format") if isinstance(self.data, dict) else None
        if found != FORMAT:
            raise ValueError(
                f"A report's data must be of format {FORMAT}: got {found!r}. Build the "
                "report again with this version of missratio."
            )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A report from what `json` gave.

        Parameters
        ----------
        text : str

        Returns
        -------
        Report
        """
        return cls(json.loads(text))

    def json(self) -> str:
        """The report's data as JSON.

        Returns
        -------
        str
        """
        return json.dumps(self.data, ensure_ascii=False, allow_nan=False)

    def html(self) -> str:
        """One page that needs nothing but a browser: no file beside it, no network.

        Returns
        -------
        str
        """
        from missratio.app.report._html import render

        return render(self.data)

    def markdown(self) -> str:
        """The report as text, without its figures.

        Returns
        -------
        str
            CommonMark, with tables as GitHub has them.
        """
        from missratio.app.report import _classes_page, _groups_page, _markdown

        render = {
            TWO_CLASSES: _markdown.render,
            SEVERAL_CLASSES: _classes_page.render_text,
            GROUPS: _groups_page.render_text,
        }
        return render[self.data["kind"]](self.data)

    def open(self) -> None:
        """Show the page: in a notebook within the output, elsewhere in a browser."""
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            shell = None
        else:
            shell = get_ipython()
        if shell is not None and hasattr(shell, "kernel"):
            display(self)
            return
        folder = Path(tempfile.mkdtemp(prefix="missratio-"))
        page = folder / "report.html"
        page.write_text(self.html(), encoding="utf-8")
        webbrowser.open(page.as_uri())

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither style meets the other."""
        return (
            f'<iframe srcdoc="{escape(self.html())}" title="missratio report" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0" '
            'sandbox="allow-scripts allow-popups"></iframe>'
        )

    def __repr__(self) -> str:
        """The certificate's headline."""
        return f"Report({self.data['words']['headline']!r})"
