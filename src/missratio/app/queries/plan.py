"""Which missing cells to look up, drawn at random within a budget and for a goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from missratio._base.blocks import any_by_row, inverse_where_positive
from missratio._base.hints import check_choice, entropy, listed
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files.cells import canonical
from missratio.app.queries.answers import (
    Columns,
    MissingCells,
    cell_word,
    read_answers,
    table_word,
    write_table,
)
from missratio.missingness.contract import RandomState
from missratio.threshold import LookUpRule, looked_up_sample

GOALS = ("certificate", "ratio", "both")
# Rows of the controlled class may get one of these shares of a budget.
SHARES = (0.25, 0.4, 0.55, 0.7, 0.85)
AS_GOOD = 0.01
# The table of powers shows these multiples of it.
MULTIPLES = (0.5, 1.0, 2.0, 4.0)
MANY_ROWS = 20_000
# Log-odds of being missing for each standard deviation of a value towards the other
# class; beyond MOST_DEVIATIONS of them they stay, so that no single row stands for all.
TILT = 1.5
MOST_DEVIATIONS = 3.0
# A range leaves out this share of draws at either end.
LEFT_OUT = 0.1
# A budget is enough if larger ones have no more power than by this.
CLEARLY = 0.1
# This share is added to variances: columns may repeat each other.
RIDGE = 1e-3


def plan_queries(
    X: Any,
    y: ArrayLike | None = None,
    *,
    per_feature: int | None = None,
    budget: int | None = None,
    goal: Literal["certificate", "ratio", "both"] | None = None,
    rowwise: bool = False,
    ids: ArrayLike | None = None,
    lines: ArrayLike | None = None,
    controlled_class: Any = 0,
    alpha: float = 0.05,
    delta: float = 0.05,
    calibration_size: float = 0.5,
    random_state: RandomState = None,
) -> QueryPlan:
    """Draw which missing cells to look up, uniformly within each class and feature.

    Given a class and a feature, every set of its missing cells of one size is equally
    likely to be drawn. King and Zeng's correction, by which `learn_missingness` gets
    from few answers to the missing probability, rests on that: cells must not be
    chosen by what is easy to look up.

    With one seed a larger plan extends a smaller one, and the draw for a class and
    feature depends on no other.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        Numbers, and words in a dataframe; NaN or null where missing.
    y : array-like of shape (n,), default=None
        Labels; None for rows of a single class.
    per_feature : int, default=None
        Values to look up for each class and feature; all of them where fewer are
        missing. With `rowwise`, rows for each class.
    budget : int, default=None
        Values to look up in all, instead of `per_feature`: spread evenly over classes
        and features, and what one can't use goes to the others. A row takes as many
        values as it misses.
    goal : {"certificate", "ratio", "both"}, default=None
        What the budget is for. "certificate" draws incomplete rows of the controlled
        class, with all that they miss. "ratio" draws single values of every class and
        feature alike. "both" draws rows of the controlled class and single values of
        the other, in the proportion that buys the most certified power in a trial on
        this table. With the first and the last, ``plan.power`` says what to expect.
    rowwise : bool, default=False
        Whether rows with a missing value are drawn, and all their missing values looked
        up: for certificates, and where rows are missing as a whole.
    ids : array-like of shape (n,), default=None
        The user's own key of each row, such as a patient's number, for the person who
        looks things up.
    lines : array-like of shape (n,), default=None
        The line of each row in the user's own file, shown beside it.
    controlled_class : object, default=0
        The class whose error is to be certified.
    alpha, delta : float, default=0.05
        The certificate that the goal is about.
    calibration_size : float, default=0.5
        The share of that class's rows that the classifier will calibrate with.
    random_state : int, RandomState, Generator or None, default=None
        Random seed; an int gives the same plan every time.

    Returns
    -------
    QueryPlan
        Which values to look up.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio import QueryPlan, plan_queries
    >>> X = np.array([[1.0, np.nan], [np.nan, np.nan], [np.nan, 2.0], [3.0, 4.0]])
    >>> plan = plan_queries(X, per_feature=1, random_state=0)
    >>> plan.columns
    array([0, 1])
    >>> frame = plan.to_frame()
    >>> frame["value"] = [1.5, 3.0]
    >>> QueryPlan.read(frame, X).answered
    array([[1, 1]])
    """
    cells = MissingCells.read(X, y)
    # An int to draw from again, whatever the source.
    seed = entropy(np.random.default_rng() if random_state is None else random_state)
    check_scalar(seed, "random_state", Integral, min_val=0)
    names, n_rows = cells.feature_names, len(cells.codes)
    # 1. What to draw from, and how much of each.
    check_choice("goal", goal, (None, *GOALS))
    certified = goal in ("certificate", "both")
    if certified:
        if len(cells.classes) != 2 or controlled_class not in cells.classes:
            raise ValueError(
                "A goal needs the labels of two classes, the controlled one among "
                f"them: got controlled_class={controlled_class!r} and the labels "
                f"{listed(cells.classes)}. Give y and controlled_class."
            )
        place = cells.classes.index(controlled_class)
        pools = _pools(cells, [place], [1 - place] if goal == "both" else [])
    else:
        codes = range(len(cells.classes))
        pools = _pools(cells, *((codes, []) if rowwise else ([], codes)))
        if (per_feature is None) == (budget is None):
            raise ValueError(
                "Say how much to look up by one of per_feature (values for each class "
                "and feature) and budget (values in all): got "
                f"per_feature={per_feature!r}, budget={budget!r}."
            )
    by_budget = certified or budget is not None
    most: Any = budget if by_budget else per_feature
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        name = "budget" if by_budget else "per_feature"
        raise ValueError(f"{name} must be a whole number, 1 or more: got {most!r}.")
    most = int(most)
    if by_budget and most < len(pools):
        raise ValueError(
            "A budget must allow one draw for each class and feature with missing "
            f"values, {len(pools)} values: got {budget}. Raise it, or take "
            "goal='certificate', which leaves the other class alone."
        )
    power, for_rows, counts = None, None, np.full(len(pools), most)
    if certified:
        asked = alpha, delta, calibration_size
        power = _forecast(cells, pools, place, most, asked, seed)
        for_rows, counts = _division(cells, pools, most, power.share)
    # 2. The first of a random order of each pool. A row takes as many values as it
    # misses, which is known, so that to leave rows out at the end is a smaller draw.
    prices, drawn = cells.missing.sum(axis=1), []
    for pool, count in zip(pools, counts, strict=True):
        # A stream of its own for a class and feature, whatever others there are.
        words = [canonical(cells.classes[pool.code])]
        words += [] if pool.column is None else [cells.feature_names[pool.column]]
        digests = [blake2b(word.encode(), digest_size=8).digest() for word in words]
        stream = tuple(int.from_bytes(digest) for digest in digests)
        sequence = np.random.SeedSequence(seed, spawn_key=stream)
        rows = np.random.default_rng(sequence).permutation(pool.rows)[:count]
        if for_rows is not None and pool.column is None:
            rows = rows[np.cumsum(prices[rows]) <= for_rows]
        drawn.append(rows)
    # 3. One of every pool in turn. Where rows have a part of the budget, pools take
    # turns in proportion to what they draw, so that the first lines of a plan divide a
    # smaller budget in the same way.
    sizes = np.array([len(rows) for rows in drawn])
    rank = np.concatenate([np.arange(size) for size in sizes])
    source = np.repeat(np.arange(len(pools)), sizes)
    turn = rank if for_rows is None else (rank + 0.5) / sizes[source]
    order = np.lexsort((source, turn))
    if for_rows is None and budget is not None:
        # What one pool can't use goes to the others. A draw takes a value or more.
        order = order[:budget]
    rows, rank, source = np.concatenate(drawn)[order], rank[order] + 1, source[order]
    wanted = cells.missing[rows]
    for place, pool in enumerate(pools):
        if pool.column is not None:
            wanted[source == place] = np.arange(wanted.shape[1]) == pool.column
    if for_rows is None and budget is not None:
        wanted[np.cumsum(wanted.sum(axis=1)) > budget] = False
    whole = np.array([pool.column is None for pool in pools])
    if whole.any() and not whole[source[any_by_row(wanted)]].any():
        mean = np.mean([prices[pool.rows].mean() for pool in pools])
        raise ValueError(
            "The budget pays for no row: the first one drawn misses more values, and "
            f"rows miss {mean:.1f} on average. To leave it out for that would "
            "be no fair draw. Raise the budget, or ask for single values "
            "(goal='ratio')."
        )
    # 4. Its cells, and how the person who looks things up calls rows.
    draws, columns = np.nonzero(wanted)
    rows = rows[draws]
    return QueryPlan(
        rows=rows,
        columns=columns,
        order=rank[draws],
        labels=np.array(cells.classes)[cells.codes[rows]] if cells.labelled else None,
        ids=None if ids is None else _by_row(ids, "ids", n_rows)[rows],
        feature_names=names,
        shape=(n_rows, len(names)),
        rowwise=whole[source[draws]],
        lines=None if lines is None else _by_row(lines, "lines", n_rows)[rows],
        seed=int(seed),
        fingerprint=cells.fingerprint,
        power=power,
    )


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """Missing cells to look up, drawn at random: a table for a person to fill in.

    Made by `plan_queries`. Lines are in random order, one of each class and feature in
    turn: what is filled in from the top down is itself a plan, however far it goes.

    Parameters
    ----------
    rows, columns : ndarray of int of shape (n_queries,)
        Positions in X, from 0.
    order : ndarray of int of shape (n_queries,)
        The number of each draw within its class and feature, or within its class where
        rows are drawn; from 1.
    labels : ndarray of shape (n_queries,) or None
        The class of each query; None where X has no labels.
    ids : ndarray of shape (n_queries,) or None
        The user's own key of each query's row.
    feature_names : tuple of str
        Those of all columns of X.
    shape : tuple of int
        That of X.
    rowwise : ndarray of bool of shape (n_queries,)
        Whether each query is one of a row that was drawn as a whole, of which every
        missing cell is a query.
    lines : ndarray of int of shape (n_queries,) or None
        Where each query's row is in the user's own file.
    seed : int
        As `random_state` it gives the same plan, or one that extends it.
    fingerprint : str
        A digest of the shape of X, its columns and what is missing in it.
    power : PlannedPower or None
        What this and other budgets should buy, where the plan has a goal.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> X = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, np.nan], [4.0, 5.0]])
    >>> plan = mr.plan_queries(X, per_feature=1, random_state=0)
    >>> answers = plan.to_frame()
    >>> answers["value"] = [2.5, 1.5]  # what somebody looked up
    >>> revealed = mr.QueryPlan.read(answers, X)
    >>> filled, inclusion = revealed.fill(X)
    >>> int(np.isnan(filled).sum())
    1
    """

    rows: IntArray
    columns: IntArray
    order: IntArray
    labels: NDArray[Any] | None
    ids: NDArray[Any] | None
    feature_names: tuple[str, ...]
    shape: tuple[int, int]
    rowwise: BoolArray
    lines: NDArray[Any] | None
    seed: int
    fingerprint: str
    power: PlannedPower | None

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return (
            f"<QueryPlan: {self.content('cells')} of a table of shape {self.shape}, "
            f"seed {self.seed}>"
        )

    @property
    def n_rows(self) -> int:
        """How many rows were drawn as a whole."""
        return len(np.unique(self.rows[self.rowwise]))

    def content(self, what: str = "values") -> str:
        """How many values to look up, in words.

        Parameters
        ----------
        what : str, default="values"
            What cells are called.
        """
        n_whole = int(self.rowwise.sum())
        whole = f"{n_whole} {what} in {self.n_rows} rows" if n_whole else ""
        single = f"{len(self) - n_whole} {'single ' if n_whole else ''}{what}"
        return " and ".join([whole] * bool(whole) + [single] * (n_whole < len(self)))

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The plan as a dataframe, with a column `value` to fill in.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"

        Returns
        -------
        dataframe
            `draw`, the order to look values up in; `row`, the position in X from 0;
            `line`, that in the user's own file, and `id`, the user's key, if given;
            `class`, if there are labels; `feature`; `value`, blank; and `key`, which
            says which cell a line is about.
        """
        frame = nw.from_dict(self._columns(), backend=backend)
        # A column of nothing has no type of its own.
        return frame.with_columns(nw.col("value").cast(nw.Float64)).to_native()

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the table to fill in, whole or not at all.

        It has the columns of `to_frame`, without `row` where there is `line`. Texts in
        a CSV file that a spreadsheet would take for formulas are marked by an
        apostrophe, which `read` takes away again.

        Parameters
        ----------
        path : str or Path
            Ends in .csv or .xlsx. The latter needs the extra ``tables``.
        force : bool, default=False
            Whether a file of that name is overwritten, instead of an error.
        """
        columns = self._columns()
        if self.lines is not None:
            # A row goes by one number, that in the user's own file.
            del columns["row"]
        write_table(columns, path, force=force)

    read = staticmethod(read_answers)

    def _columns(self) -> Columns:
        columns: Columns = {"draw": self.order.tolist(), "row": self.rows.tolist()}
        keys = {"line": self.lines, "id": self.ids, "class": self.labels}
        columns |= {name: k.tolist() for name, k in keys.items() if k is not None}
        columns["feature"] = [self.feature_names[column] for column in self.columns]
        columns["value"] = [None] * len(self)
        words = [table_word(self.fingerprint, rowwise=whole) for whole in (False, True)]
        cells = np.stack([self.rowwise, self.rows, self.columns, self.order], axis=1)
        columns["key"] = [
            f"{words[whole]}-{cell_word(self.fingerprint, self.shape, cell)}"
            for whole, *cell in cells.tolist()
        ]
        return columns


@dataclass(frozen=True, eq=False)
class PlannedPower:
    """The power to expect of look-ups, divided as the plan divides them.

    Parameters
    ----------
    values : ndarray of int of shape (n_budgets,)
        Values to look up in all.
    rows : ndarray of int of shape (n_budgets,)
        Rows of the controlled class among what they make.
    power : ndarray of shape (n_budgets,)
        0 where no threshold is certified, averaged over draws; values are taken as
        missing completely at random.
    share : float
        The share of the values that goes to rows of the controlled class: of those
        tried none has more power by 0.01.
    lower, upper : ndarray of shape (n_budgets,)
        A range that holds about eight of ten draws, also if the log-odds of being
        missing rise or fall by 1.5 with each standard deviation of a value towards the
        other class.
    """

    values: IntArray
    rows: IntArray
    power: FloatArray
    share: float
    lower: FloatArray
    upper: FloatArray

    def __str__(self) -> str:
        """In words: how much power each number of rows should buy."""
        parts = [
            f"{rows} rows: power {self.figure(place)}"
            for place, rows in enumerate(self.rows)
        ]
        return "; ".join(parts)

    def figure(self, place: int) -> str:
        """In words: the power of one budget, and its range.

        Parameters
        ----------
        place : int
            The budget's, in the table.
        """
        low, high = self.lower[place], self.upper[place]
        return f"{self.power[place]:.2f} ({low:.2f} to {high:.2f})"

    @property
    def enough(self) -> int:
        """The place of the least budget that no other in the table clearly beats.

        Neither in power nor in the lower end of its range, so that it is not one by
        which nothing may be certified where a larger one would do.
        """
        columns = np.stack([self.power, self.lower])
        as_good = columns >= columns.max(axis=1, keepdims=True) - CLEARLY
        return int(np.argmax(as_good.all(axis=0)))

    @property
    def range_meaning(self) -> str:
        """In words: what the ranges allow for."""
        return (
            "The first figure takes values as missing completely at random; the range "
            "holds eight of ten draws, also if the odds of being missing grow or fall "
            f"by a factor of {np.exp(TILT):.2g} with each standard deviation of a "
            "value towards the other class"
        )


@dataclass(frozen=True)
class Pool:
    """The rows of a class that miss a feature, or any where `column` is None."""

    rows: IntArray
    code: int
    column: int | None


def _pools(
    cells: MissingCells, whole: Sequence[int], single: Sequence[int]
) -> list[Pool]:
    """What can be drawn from: rows of some classes, and single values of others."""
    features = range(cells.missing.shape[1])
    pools = []
    for code, column in [*product(whole, [None]), *product(single, features)]:
        lost = any_by_row(cells.missing) if column is None else cells.missing[:, column]
        rows = np.flatnonzero(lost & (cells.codes == code))
        pools += [Pool(rows, code, column)] if len(rows) else []
    if not pools:
        raise ValueError("There is nothing to look up: no value is missing.")
    return pools


def _division(
    cells: MissingCells, pools: list[Pool], budget: int, share: float
) -> tuple[int, IntArray]:
    """Values for rows, and how many to draw from each pool at most.

    A share of the budget is for rows. What one part can't use the other gets.
    """
    whole = [pool for pool in pools if pool.column is None]
    single = [pool for pool in pools if pool.column is not None]
    most_rows = sum(int(cells.missing[pool.rows].sum()) for pool in whole)
    most_cells = sum(len(pool.rows) for pool in single)
    for_rows = min(round(share * budget), most_rows)
    for_cells = min(budget - for_rows, most_cells)
    counts = [len(pool.rows) for pool in whole]
    if single:
        # By how many each has, and one at least, by Webster's highest averages: with a
        # larger total no pool gets fewer.
        quotients = [
            np.append(np.inf, n / (np.arange(1, min(n, max(for_cells, 1))) + 0.5))
            for n in (len(pool.rows) for pool in single)
        ]
        source = np.repeat(np.arange(len(single)), [len(q) for q in quotients])
        best = np.argsort(-np.concatenate(quotients), kind="stable")[:for_cells]
        counts += np.bincount(source[best], minlength=len(single)).tolist()
    return min(budget - for_cells, most_rows), np.array(counts)


def _forecast(
    cells: MissingCells,
    pools: list[Pool],
    controlled: int,
    budget: int,
    asked: tuple[float, float, float],
    seed: int,
) -> PlannedPower:
    """How a budget is best divided, by the certified power that it buys.

    The table is completed, each missing value by that of a random row of its class that
    has it, and the result is taken for the truth. For every division of the budget the
    whole procedure is tried on it. Rows of the controlled class and single values of
    the other are drawn; the log-ratio of two normal laws with one covariance is fitted,
    weighted by 1/P(drawn); a threshold is certified. These powers are for planning: the
    certificate rests on none of them.

    That completes the table as if values were missing completely at random. So the same
    is tried under two tilted laws, in which the log-odds of being missing grow or fall
    by TILT with each standard deviation of a value towards the other class. A missing
    value is then that of a row drawn with a probability in proportion to these odds.
    The range to expect holds most draws under each of the three laws: which rows come
    up decides much where few of them do.
    """
    is_other: BoolArray = cells.codes != controlled
    n_whole = sum(pool.column is None for pool in pools)
    # Each division is tried eight times, and twice where rows are many and powers
    # steadier.
    walks = 8 if len(cells.values) <= MANY_ROWS else 2
    missing, (alpha, delta, calibration_size) = cells.missing, asked

    def tried_power(
        rows: FloatArray, for_rows: int, counts: IntArray, walk: int
    ) -> tuple[float, int]:
        """The power that one draw buys, and how many rows it has."""
        rng = np.random.default_rng([seed, 2, walk])
        # 1. How likely each entry was to be there.
        inclusion, n_drawn, looked_up = np.where(missing, 0.0, 1.0), 0, 0.0
        for pool, count in zip(pools, counts.tolist(), strict=True):
            drawn = rng.permutation(pool.rows)[:count]
            if pool.column is None:
                drawn = drawn[np.cumsum(missing[drawn].sum(axis=1)) <= for_rows]
                n_drawn, looked_up = len(drawn), len(drawn) / len(pool.rows)
                inclusion[drawn] = np.where(missing[drawn], looked_up, 1.0)
            else:
                inclusion[drawn, pool.column] = count / len(pool.rows)
        # 2. The score Σ₀⁻¹(μ₁ − μ₀) by rows of one half.
        controlled = rng.permutation(np.flatnonzero(~is_other))
        n_held = round(calibration_size * len(controlled))
        held, training = controlled[:n_held], controlled[n_held:]
        weights = inverse_where_positive(inclusion[training].min(axis=1))
        if np.count_nonzero(weights) < 2:
            return 0.0, n_drawn
        mean = np.average(rows[training], axis=0, weights=weights)
        centred, tiny = rows[training] - mean, np.finfo(np.float64).tiny
        spread = (weights * centred.T) @ centred / weights.sum()
        spread += np.diag(RIDGE * np.diagonal(spread) + tiny)
        worth = inverse_where_positive(inclusion[is_other])
        total = np.maximum(worth.sum(axis=0), tiny)
        other = (worth * rows[is_other]).sum(axis=0) / total
        scores = rows @ np.linalg.lstsq(spread, other - mean)[0]
        # 3. The threshold that rows of the other half certify.
        expected = float(any_by_row(missing[~is_other]).mean()), looked_up
        there = inclusion[held].min(axis=1)
        sample = looked_up_sample(scores[held], there, expected=expected)
        threshold = LookUpRule().select(sample, alpha, delta).threshold
        if threshold is None:
            return 0.0, n_drawn
        return float((scores[is_other] > threshold).mean()), n_drawn

    def powers(rows: FloatArray, size: int, share: float, walks: int) -> FloatArray:
        """The power of each draw, and the controlled rows that it looks up."""
        division = _division(cells, pools, size, share)
        if (division[1] == 0).any():
            return np.zeros((walks, 2))
        return np.array([tried_power(rows, *division, walk) for walk in range(walks)])

    rows = _completed(cells.values, is_other, np.zeros(missing.shape[1]), seed)
    shares = SHARES if 0 < n_whole < len(pools) else (float(n_whole),)
    few = max(2, walks // 2)
    tried = {share: powers(rows, budget, share, few)[:, 0].mean() for share in shares}
    # Of shares that are as good, the one with the most rows: these certify.
    best = max(tried.values()) - AS_GOOD
    share = max(share for share, power in tried.items() if power >= best)
    sizes = np.unique(np.round(budget * np.array(MULTIPLES)).astype(int))
    sizes = sizes[sizes >= len(pools)]
    towards = np.sign(rows[is_other].mean(axis=0) - rows[~is_other].mean(axis=0))
    by_law = []
    for tilt in (0.0, TILT, -TILT):
        rows = _completed(cells.values, is_other, tilt * towards, seed)
        by_law.append([powers(rows, size, share, walks) for size in sizes.tolist()])
    # A budget beyond all that is missing buys no more: it isn't shown twice.
    drawn = np.mean(by_law[0], axis=1)
    counts, first = np.unique(np.round(drawn[:, 1]).astype(int), return_index=True)
    laws = np.array(by_law)[..., 0][:, first]
    lower = np.quantile(laws, LEFT_OUT, axis=2).min(axis=0)
    upper = np.quantile(laws, 1.0 - LEFT_OUT, axis=2).max(axis=0)
    return PlannedPower(sizes[first], counts, drawn[first, 0], share, lower, upper)


def _completed(
    values: FloatArray, is_other: BoolArray, tilt: FloatArray, seed: int
) -> FloatArray:
    """Missing values by those of random rows of the same class; 0 if none has it.

    `tilt` has each column's log-odds of being missing for a standard deviation, in the
    controlled class; in the other they are the opposite. The law of missing values is
    that of observed ones times the odds of being missing.
    """
    rng, rows = np.random.default_rng([seed, 1]), values.copy()
    missing = np.isnan(values)
    for of_class, slopes in ((is_other, -tilt), (~is_other, tilt)):
        for column, slope in enumerate(slopes):
            lost = np.flatnonzero(of_class & missing[:, column])
            known = values[of_class & ~missing[:, column], column]
            if not len(known):
                rows[lost, column] = 0.0
                continue
            far = (known - known.mean()) / (known.std() or 1.0)
            odds = np.exp(slope * far.clip(-MOST_DEVIATIONS, MOST_DEVIATIONS))
            rows[lost, column] = rng.choice(known, len(lost), p=odds / odds.sum())
    return rows


def _by_row(given: ArrayLike, name: str, n_rows: int) -> NDArray[Any]:
    keys: NDArray[Any] = np.asarray(given)
    if keys.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one key for each of {n_rows} rows: got shape "
            f"{keys.shape}."
        )
    return keys if keys.dtype.kind in "biuf" else np.array(list(map(str, keys)), object)
