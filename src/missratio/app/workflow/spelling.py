"""Texts that may be the same, spelled in two ways."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

import numpy as np

from missratio.app.tables.columns import BLANK
from missratio.app.tables.labelled import LabelledTable
from missratio.exceptions import Message, TableError


def variants(counts: Mapping[str, int]) -> Iterator[tuple[str, str, bool]]:
    """Spellings, what each may mean, and whether it is the same but for case and gaps.

    Parameters
    ----------
    counts : mapping from str to int
        How often each is there; the most frequent one is what others mean.
    """
    alike: dict[str, str] = {}
    for text in sorted(counts, key=lambda each: -counts[each]):
        # A- and A+ differ: marks are gaps between letters alone.
        key = re.sub(r"(?<=\w)[\s_.-]+(?=\w)", " ", text.casefold()).strip(" .")
        if (same := alike.setdefault(key, text)) != text:
            yield text, same, True
    for text in alike.values():
        # A spelling may be a slip of one that is ten times as frequent.
        common = [o for o in alike.values() if counts[o] >= 10 * counts[text]]
        if len(text) > 2 and (near := get_close_matches(text, common, 1, 0.75)):
            yield text, near[0], False


def check_spellings(table: LabelledTable) -> list[Message]:
    """Refuse labels that differ in case alone; notes on what may be misspelled."""
    labels = {text: n for text, n in table.counts.items() if isinstance(text, str)}
    same = [(text, meant) for text, meant, certain in variants(labels) if certain]
    if same:
        merged = " ".join(shlex.join(["--merge", "=".join(pair)]) for pair in same)
        text, meant = same[0]
        raise TableError(
            f"The labels {text!r} ({labels[text]} rows) and {meant!r} ({labels[meant]} "
            f"rows) in {table.target!r} differ in their spelling alone. If they are "
            f"the same, add {merged}; if not, give one of them another name."
        )
    columns = {table.target: labels}
    for column in table.encoder.columns:
        if column.levels is not None:
            marks = table.X[:, table.encoder.indicators[column.name]]
            sizes = np.nansum(marks, axis=0).astype(int)
            first = int((~np.isnan(marks).all(axis=1)).sum() - sizes.sum())
            sizes = dict(zip(column.levels, [first, *sizes.tolist()], strict=True))
            columns[column.name] = {k: n for k, n in sizes.items() if k != BLANK}
    return [
        Message(
            "Column {name!r} says {text!r} in {count} rows, and {meant!r} in {more}. "
            "If they are the same, say {option}.",
            facts={
                "name": name, "text": text, "count": counts[text], "meant": meant,
                "more": counts[meant],
                "option": shlex.join(["--merge", f"{text}={meant}"]),
            },
        )
        for name, counts in columns.items()
        for text, meant, _ in variants(counts)
    ]  # fmt: skip
