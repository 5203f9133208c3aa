"""φ from looked-up values: evidence by feature or of whole rows, and its fits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from missratio._base.blocks import any_by_row
from missratio._base.reading import joined
from missratio._base.typing import FloatArray
from missratio.learning._evidence import Evidence, Fits, fit_evidence
from missratio.missingness.contract import check_no_partial_row

Fitted = dict[int, tuple[FloatArray, Evidence]]
"""Parameters by place, intercepts not yet corrected, and what they were fitted to."""


def evidence_of_features(
    table: NDArray[Any], answers: NDArray[Any], names: tuple[str, ...]
) -> list[Evidence | None]:
    """Each feature's evidence; None where it is never missing."""
    evidence: list[Evidence | None] = []
    unseen = []
    for j, name in enumerate(names):
        column = table[:, j].astype(np.float64, copy=False)
        known = answers[:, j].astype(np.float64, copy=False)
        # By number: a mask of which half is true takes longer.
        observed = column[np.flatnonzero(~np.isnan(column))]
        looked_up = known[~np.isnan(known)]
        n_missing = len(column) - len(observed)
        if n_missing == 0:
            evidence.append(None)
            continue
        unseen += [] if len(observed) else [name]
        if len(observed):
            found = Evidence.collect(observed[None], looked_up[None], n_missing)
            evidence.append(found if not found.constant[0] else found.without_slope())
    if unseen:
        raise ValueError(
            f"Column(s) {joined(unseen)} are never observed: what is always missing "
            "can't be weighted back. Leave them out."
        )
    return evidence


def evidence_of_rows(
    table: NDArray[Any],
    answers: NDArray[Any],
    names: tuple[str, ...],
    *,
    needed: bool,
) -> list[Evidence | None]:
    """The evidence on whole rows; `needed` where nothing else could teach."""
    check_no_partial_row(table, 0)
    lost = any_by_row(np.isnan(table))
    known = ~any_by_row(np.isnan(answers))
    partial = ~known & any_by_row(~np.isnan(answers))
    if partial.any():
        raise ValueError(
            f"revealed has some but not all entries of row {int(np.argmax(partial))}: "
            "a rowwise model needs whole rows. Look up the rest, or set them to NaN."
        )
    if not lost.any():
        return [None]
    if lost.all() or (needed and not known.any()):
        what = "observed in X" if lost.all() else "revealed"
        raise ValueError(
            f"No row is {what}: why rows are missing can't be learned without. Look up "
            "some missing rows, and give observed ones."
        )
    rows = (table[~lost].T, answers[known].T)
    observed, looked_up = (np.ascontiguousarray(r, dtype=np.float64) for r in rows)
    evidence = Evidence.collect(observed, looked_up, int(lost.sum()))
    if evidence.constant.any():
        flat = [names[j] for j in np.flatnonzero(evidence.constant)]
        raise ValueError(
            f"Column(s) {joined(flat)} are constant: their slope can't be learned. "
            "Leave them out."
        )
    return [evidence]


def fit_lookups(
    evidence: list[Evidence | None], method: str, names: tuple[str, ...]
) -> Fitted:
    """Fit what was looked up, features of a kind at once."""
    result: Fitted = {}
    known = {j: e for j, e in enumerate(evidence) if e is not None and e.n_revealed}
    for width in sorted({len(e.values) for e in known.values()}):
        of_width = {j: e for j, e in known.items() if len(e.values) == width}
        fits = fit_evidence(list(of_width.values()), penalised=method == "firth")
        _check_fits(fits, [names[j] if len(evidence) > 1 else "rows" for j in of_width])
        for i, (j, e) in enumerate(of_width.items()):
            result[j] = (fits.theta[i], e)
    return result


def _check_fits(fits: Fits, names: list[str]) -> None:
    separated = [names[i] for i in np.flatnonzero(fits.separated)]
    if separated:
        raise ValueError(
            f"In {joined(separated)} the revealed values are separated from the "
            "observed ones, so that no maximum of the likelihood exists. Use "
            "method='firth', or look up more values."
        )
    if not fits.converged.all():
        failed = [names[i] for i in np.flatnonzero(~fits.converged)]
        warnings.warn(
            f"The missingness of {joined(failed)} was not learned to full precision: "
            "its values may be on very different scales. Rescale them, and look for "
            "outliers.",
            ConvergenceWarning,
            stacklevel=5,
        )
