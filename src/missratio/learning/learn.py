"""Learning φ: from the table, from a few missing values looked up, or from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base import reading
from missratio._base.blocks import any_by_row
from missratio._base.hints import check_choice
from missratio._base.reading import joined
from missratio._base.typing import FloatArray, IntArray
from missratio.exceptions import warn
from missratio.learning import checks as tests
from missratio.learning.assume import Assumption
from missratio.learning.evidence import Evidence, Unit, fit_lookups
from missratio.learning.learned import LearnedMissingness
from missratio.learning.table import check_by_lookups, find_categories, teach
from missratio.missingness import Block, BlockMissingness
from missratio.missingness.contract import check_no_partial_row

METHODS = ("firth", "ml")


def learn_missingness(
    X: Any,
    revealed: Any = None,
    method: Literal["firth", "ml"] = "firth",
    *,
    rowwise: bool = False,
    from_table: bool = True,
    categories: Sequence[Sequence[str | int]] | None = None,
    depends_on: Sequence[str | int] = (),
    assumptions: Sequence[str | Assumption] = (),
    check: bool = True,
) -> LearnedMissingness | BlockMissingness:
    """Learn a logistic φ from the table, from missing values looked up, or from both.

    From the table, per feature: whether entry j is missing depends on z_j alone, and
    entries go missing independently given the row. Then E[(1{j observed}/(1 − φ_j) − 1)
    h] = 0 for every function h of the other columns and of which of them are missing.
    Two such functions, built on a prediction of z_j, fix φ_j (generalised method of
    moments); a weak prior, N(0, 1.4²) on the slope per standard deviation, tames
    columns that nothing predicts.

    From looked-up values: a logistic regression of "was missing" on the value, over the
    observed values and the m revealed ones. As only m of n_missing are known, its
    intercept is too low by log(n_missing / m) and is raised by that (King and Zeng
    2001; the paper's section on learning φ). The revealed ones must be drawn by chance
    among the missing. The two are weighted by their information.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing. Words in a dataframe are categories;
        those with blanks have to be of that type, so that φ knows all of them.
    revealed : array-like or dataframe of shape (n, d), optional
        Values of cells that are missing in X and were looked up; NaN elsewhere.
    method : {"firth", "ml"}, default="firth"
        For looked-up values: Firth's penalised likelihood, which is nearly unbiased
        with few of them and finite where these are separated from the observed ones;
        its intercept is then set so that the fit reproduces the number revealed. Or
        plain maximum likelihood.
    rowwise : bool, default=False
        Whole rows are missing, with φ logistic in all features.
    from_table : bool, default=True
        Whether the other columns may teach; False learns from looked-up values alone.
    categories : sequence of sequences of str or int, optional
        The indicators of each category, by name or place: they are one column, which is
        missing as a whole. None finds those that are one-hot and missing in the same
        rows, five or more.
    depends_on : sequence of str or int, default=()
        Columns, by name or place, on which it may depend too whether a value is
        missing, such as the age that decides who is tested. They must have no missing
        values. φ of each column is then logistic in the value and in these, and what is
        learned from are the columns beside them.
    assumptions : sequence of str or Assumption, default=()
        What is known of single columns, such as "HbA1c: 30%, higher more likely": that
        column's φ has a slope in the range that the words mean, per standard deviation
        of its observed values an odds ratio of 1.2 to 3 ("slightly more likely": 1 to
        1.5; "much more likely": 2 to 8; "2 to 4 times more likely"; nothing: 1), and
        the level that the table gives it. Beyond three standard deviations from the
        mean φ stays what it is there. Of a category its share alone can be stated. A
        guarantee holds for the whole range, or with `from_table` for what of it the
        other columns leave possible.
    check : bool, default=True
        Whether to test if the data contradicts the model, and to warn where it does.
        The tests take longer than the fit; False leaves `checks` empty.

    Returns
    -------
    LearnedMissingness or BlockMissingness
        A `LogisticMissingness` with covariance, a confidence band and checks. Where X
        has a category's indicators, which are one-hot and go missing together, these
        are one column, with one φ over the levels: a `BlockMissingness`. With
        `depends_on` every column with missing values is such a block.

    Warns
    -----
    MissingnessWarning
        Where the data contradicts the model (see `LearnedMissingness.checks`), and
        where nothing could teach a column's slope.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(2000, 1)) + 0.7 * rng.normal(size=(2000, 3))
    >>> X = mr.corrupt(Z, mr.LogisticMissingness(-1.0, [1.5, 1.0, 0.0]), rng)
    >>> phi = mr.learn_missingness(X)
    >>> phi.coef.round(1), phi.standard_errors[:, 1].round(1)
    (array([1.4, 1.2, 0. ]), array([0.1, 0.1, 0.1]))

    With 60 values of each column looked up as well:

    >>> revealed = np.full_like(X, np.nan)
    >>> for j in range(3):
    ...     chosen = rng.choice(np.flatnonzero(np.isnan(X[:, j])), 60, replace=False)
    ...     revealed[chosen, j] = Z[chosen, j]
    >>> mr.learn_missingness(X, revealed).standard_errors[:, 1].round(2)
    array([0.1 , 0.09, 0.05])
    """
    check_choice("method", method, METHODS)
    if not rowwise and (words := reading.word_levels(X)):
        how: dict[str, Any] = {"from_table": from_table, "assumptions": assumptions}
        how |= {"method": method, "check": check}
        return _by_levels(X, words, revealed, categories or (), depends_on, how)
    # 1. The table, and what was looked up of it.
    table = reading.read_floats(X)
    names = list(reading.names_or_numbers(X, table.shape[1]))
    answers = np.full(table.shape, np.nan)
    if revealed is not None:
        answers = reading.read_floats(revealed, "revealed")
        # Two dataframes are matched by place, so that names must be the same.
        theirs, ours = reading.column_names(revealed), reading.column_names(X)
        if theirs and ours and len(theirs) == len(ours) and theirs != ours:
            raise ValueError(
                f"revealed must have the columns of X, {joined(names)}, in their "
                f"order: got {joined(theirs)}."
            )
    if table.shape != answers.shape:
        raise ValueError(
            f"revealed must have the shape of X: got {answers.shape} and {table.shape}."
            " Put NaN where nothing was looked up."
        )
    contradicted = np.argwhere(~np.isnan(table) & ~np.isnan(answers))
    if len(contradicted):
        row, column = contradicted[0].tolist()
        raise ValueError(
            f"revealed has {answers[row, column]} at row {row}, column "
            f"{reading.column_name(X, column)}, which isn't missing in X. Only cells "
            "that are missing can be revealed."
        )
    unseen = np.flatnonzero(np.isnan(table).all(axis=0)).tolist()
    if unseen:
        raise ValueError(
            f"Column(s) {joined([names[j] for j in unseen])} are never observed: what "
            "is always missing can't be weighted back. Leave them out."
        )
    every = np.arange(len(names))
    # 2. What goes missing together, and what its φ is logistic in.
    blocks = [(every, every)]
    if not rowwise:
        # The indicators of a category are one column: one φ over its levels.
        given = None
        if categories is not None:
            given = [
                reading.column_places(columns, names, "categories")
                for columns in categories
            ]
        blocks = find_categories(table, answers, given, names)
        if len(depends_on):
            further = reading.column_places(depends_on, names, "depends_on")
            lossy = np.flatnonzero(np.isnan(table).any(axis=0))
            if len(both := np.intersect1d(further, lossy)):
                raise ValueError(
                    f"Column(s) {joined([names[j] for j in both])} have missing "
                    "values: depends_on takes columns that have none."
                )
            apart = [j for columns, _ in blocks for j in columns]
            alone = np.setdiff1d(lossy, apart)
            blocks += [(every[[j]], every[[j]]) for j in alone]
            blocks = [(cols, np.append(inputs, further)) for cols, inputs in blocks]
    apart = [j for columns, _ in blocks for j in columns]
    single = [] if rowwise else np.setdiff1d(every, apart).tolist()
    units = [Unit(every[[j]], every[[j]], names[j]) for j in single]
    for columns, inputs in blocks:
        called = [names[j] for j in columns]
        # A category goes by what stands before the "=".
        (stem, *others) = {name.rpartition("=")[0] for name in called}
        plain = others or not stem or len(called) == 1
        name = "rows" if rowwise else joined(called) if plain else stem
        units.append(Unit(columns, inputs, name))
    # 3. What is stated, what was looked up, and what the other columns say.
    stated: list[tuple[Unit, Assumption]] = []
    for said in assumptions:
        assumption = Assumption.read(said) if isinstance(said, str) else said
        column = assumption.column
        named = [u for u in units if names[u.columns[0]].rpartition("=")[0] == column]
        if not named:
            (j,) = reading.column_places([column], names, "assumptions")
            named = [unit for unit in units if j in unit.columns]
        (unit, *_), problem = named, ""
        values, looked_up = table[:, unit.inputs[0]], answers[:, unit.inputs[0]]
        if unit in [other for other, _ in stated]:
            problem = "two things are stated of it"
        elif not np.isin(unit.inputs, unit.columns).all():
            problem = "its φ is that of several columns"
        elif len(unit.inputs) > 1 and not assumption.constant:
            problem = "it is a category, which has no higher values"
        elif not np.isnan(values).any():
            problem = "none of its values is missing"
        elif not np.isnan(looked_up).all():
            problem = "values of it were looked up, which tell more: leave it out"
        elif np.nanmin(values) == np.nanmax(values):
            problem = "it has one value only where it is observed"
        if problem:
            raise ValueError(f"Nothing can be assumed of {column!r}: {problem}.")
        # Of a φ that is the same for all levels, one indicator says as much as all.
        unit.inputs = unit.inputs[:1]
        stated.append((unit, assumption))
    table = table.copy() if stated else table
    for unit, assumption in stated:
        table[:, unit.inputs] = assumption.clipped(table[:, unit.inputs])
    for unit in units:
        columns, inputs = unit.columns, unit.inputs
        values, looked_up = table[:, inputs], answers[:, inputs]
        if not unit.single:
            check_no_partial_row(table[:, columns], 0)
            blank = np.isnan(answers[:, columns])
            partial = any_by_row(blank) & any_by_row(~blank)
            if partial.any():
                raise ValueError(
                    "revealed has some but not all entries of row "
                    f"{int(np.argmax(partial))}: a rowwise model needs whole rows. "
                    "Look up the rest, or set them to NaN."
                )
            # What is always observed counts as missing with them, and as looked up.
            lost = np.isnan(table[:, columns[:1]])
            looked_up = np.where(np.isnan(looked_up), values, looked_up)
            looked_up = np.where(blank[:, :1], np.nan, looked_up)
            values = np.where(lost, np.nan, values)
        evidence = Evidence.of(values, looked_up)
        if evidence is None:
            continue
        constant = np.ptp(evidence.values, axis=1) == 0.0
        if not unit.single and constant.any():
            never = [names[j] for j in inputs[constant]]
            raise ValueError(
                f"Column(s) {joined(never)} are constant: their slope can't be "
                "learned. Leave them out."
            )
        unit.evidence = replace(evidence, values=evidence.values[~constant])
    for unit, assumption in stated:
        column = table[:, unit.inputs[0]]
        order = np.argsort(column, kind="stable")
        observed, lost = np.split(order, [int((~np.isnan(column)).sum())])
        unit.shadow, unit.theta = assumption.teach(column[observed], observed, lost)
    fit_lookups(units, method)
    if check:
        check_by_lookups(table, answers, units, names)
    if from_table and not rowwise:
        teach(table, units, names, test=check)
    unknown = {
        unit.name: len(unit.evidence.values)
        for unit in units
        if unit.evidence is not None and unit.theta is None
    }
    if unknown:
        why = "there is no other column to learn from"
        if not next(iter(unknown.values())):
            why = "have one value only where they are observed"
        raise ValueError(
            f"Column(s) {joined(list(unknown))} have missing values and none revealed, "
            f"and {why}: why they are missing can't be learned. Look up some of them, "
            "or leave the columns out."
        )
    # 4. Models: of single columns at once, and of each block.

    def learned(columns: IntArray, *parts: Unit) -> LearnedMissingness:
        """The φ of some units; of one with several columns, it is rowwise."""
        by_row = rowwise or columns is not every
        shape = (1, len(columns)) if by_row else (len(columns), 1)
        intercept, coef = np.full(shape[0], -np.inf), np.zeros(shape)
        evidence: list[Any] = [None] * shape[0]
        shadow, checks = evidence.copy(), []
        if check and not by_row:
            checks = tests.missing_together(np.isnan(table), parts)
        for unit in parts:
            k = 0 if by_row else int(unit.columns[0])
            evidence[k], shadow[k] = unit.evidence, unit.shadow
            if unit.theta is not None:
                slopes = unit.theta[1:]
                intercept[k], coef[k, : len(slopes)] = unit.theta[0], slopes
            checks += unit.checks
        return LearnedMissingness(
            intercept[0] if by_row else intercept,
            coef.ravel(),
            by_row,
            tuple(evidence),
            method,
            tuple(names[j] for j in columns),
            tuple(shadow),
            tests.concluded(checks),
        )

    model: LearnedMissingness | BlockMissingness
    if rowwise:
        model = learned(units[0].inputs, units[0])
    else:
        model = learned(every, *units[: len(single)])
        parts = []
        for unit in units[len(single) :]:
            places = tuple(unit.columns.tolist()), tuple(unit.inputs.tolist())
            parts.append(Block(*places, learned(unit.inputs, unit)))
        if parts:
            model = BlockMissingness(model, tuple(parts), len(names))
    if text := tests.warning_text(model.checks):
        warn(tests.MissingnessWarning(text))
    return model


def _by_levels(
    X: Any,
    words: Mapping[int, Sequence[Any]],
    revealed: Any,
    categories: Sequence[Sequence[str | int]],
    depends_on: Sequence[str | int],
    how: Mapping[str, Any],
) -> LearnedMissingness | BlockMissingness:
    """φ of a dataframe with words: learned of their indicators, for their codes."""
    frame: Any = reading.as_frame(X)
    names = reading.names_or_numbers(X, frame.shape[1])
    codes = {k: reading.category_codes(levels) for k, levels in words.items()}
    blank = [k for k in words if frame[:, k].null_count()]
    if texts := [names[k] for k in reading.as_coded(X)[1] if k in blank]:
        raise ValueError(
            f"Column(s) {joined(texts)} are texts with blanks, and φ of a word goes by "
            "its place among all words. Make categories of them, in the whole table: "
            f"X = X.astype({dict.fromkeys(texts, 'category')})."
        )
    # By name: places are others where words have an indicator each.
    *groups, deciding = (
        [x if isinstance(x, str) else names[x] for x in some]
        for some in (*categories, depends_on)
    )
    if deciding and (blank or not {names[k] for k in words}.isdisjoint(deciding)):
        raise ValueError(
            "depends_on takes columns of numbers, of a table whose words have no "
            "blanks. Make numbers of words first: X = pandas.get_dummies(X)."
        )
    # 1. The same table with an indicator of each level.
    spelt = [[f"{names[k]}={x}" for x in words.get(k, ())] for k in range(len(names))]
    spelt = [some or [name] for some, name in zip(spelt, names, strict=True)]
    every = [name for some in spelt for name in some]
    source = np.repeat(np.arange(len(names)), [len(some) for some in spelt])

    def indicators(given: Any, name: str = "X") -> FloatArray:
        columns = reading.read_floats(given, name, coded=True).T[:, :, None]
        parts = [
            np.where(np.isnan(x), np.nan, x == codes[k]) if k in codes else x
            for k, x in enumerate(columns)
        ]
        return np.hstack(parts)

    wide = dict(zip(every, indicators(X).T, strict=True))
    model = learn_missingness(
        nw.from_dict(wide, backend=frame.implementation).to_native(),
        None if revealed is None else indicators(revealed, "revealed"),
        categories=[*groups, *(spelt[k] for k in blank)] or None,
        depends_on=deciding,
        **how,
    )
    # 2. The same φ of a column of codes.
    first = np.searchsorted(source, np.arange(len(names)))
    blocks = []
    for block in getattr(model, "blocks", ()):
        columns, inputs = (source[list(x)] for x in (block.columns, block.inputs))
        levels: tuple[float, ...] = ()
        if (k := columns[0]) in words:
            levels = tuple(codes[k][np.array(block.inputs) - first[k]].tolist())
            columns, inputs = columns[:1], columns[:1]
        places = tuple(columns.tolist()), tuple(inputs.tolist())
        blocks.append(Block(*places, block.model, levels))
    base: Any = getattr(model, "base", model)
    base = replace(base.some_columns(first, len(every)), feature_names=names)
    return BlockMissingness(base, tuple(blocks), len(names)) if blocks else base
