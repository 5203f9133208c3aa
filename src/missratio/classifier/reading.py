"""Tables, labels, groups and sources as a classifier reads them; copies among rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.hints import another_type, listed
from missratio._base.reading import WordColumns, as_numeric_array, read_labels
from missratio._base.typing import FloatArray, IntArray
from missratio.exceptions import Explained, Message, warn
from missratio.rows import LabelledBlock, LabelledSource, check_label_types
from missratio.tensor import on_host

_ROUNDING = 1e-9


def calibrated_rows(classifier: Any, labels: Any) -> IntArray:
    """The rows of a table that a classifier was calibrated with.

    After `calibrate` its rows of the controlled class are those that it got.
    """
    held = np.flatnonzero(labels == classifier.certificate_.controlled_class)
    among = getattr(classifier, "_calibrating", None)
    if among is not None:
        held = held[among[among < len(held)]]
    return np.asarray(getattr(classifier, "calibration_index_", held))


def check_same_rows(classifier: Any, X: Any, y: ArrayLike) -> None:
    """Refuse rows other than those that a fitted classifier was calibrated with.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
    X, y : array-like
        The rows that it was fitted with, in their order. After `calibrate`, those of
        the controlled class are the ones that it was calibrated with, in their order.
    """
    check_is_fitted(classifier, "threshold_")
    X = classifier._read(X, every=True)
    labels = read_labels(y, X)
    held = calibrated_rows(classifier, labels)
    kept, same = classifier.calibration_.sample, len(held) and held.max() < len(labels)
    if same:
        again = classifier.calibration_sample(take_rows(X, held))
        same = again.n_rows == kept.n_rows and again.n_observed == kept.n_observed
        same = same and np.allclose(again.values, kept.values, _ROUNDING, _ROUNDING)
    if not same:
        raise ValueError(
            "X and y are not the rows that the classifier's certificate is about. Give "
            "the rows that it was fitted with, in the same order; after calibrate, "
            "those of the controlled class that it was calibrated with."
        )


SHOWN = 5


def known_labels(y: Any, X: Any, classes: Any) -> Any:
    """Labels, one for each row of X, of which a fitted classifier knows all."""
    labels = read_labels(on_host(y), X)
    if unknown := set(labels.tolist()) - set(classes.tolist()):
        raise ValueError(
            f"y has labels {sorted(map(str, unknown))} that the classifier doesn't "
            f"know: it has the classes {classes.tolist()}."
        )
    return labels


class UnknownGroupWarning(UserWarning):
    """Rows are of groups that have no threshold, and get the controlled class."""


def read_groups(groups: Any, X: Any, instead: str = "such as 'unknown'") -> Any:
    """The group of each row.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
    X : array-like or dataframe of shape (n_rows, n_columns)
    instead : str
        What to give a row that has none.
    """
    members = np.asarray(groups, dtype=object)
    if members.ndim != 1:
        what = "None" if groups is None else f"shape {members.shape}"
        raise ValueError(
            f"groups must hold one label for each row: got {what}. To cross several "
            "columns, join them into one, such as 'old/north'."
        )
    check_consistent_length(X, members)
    missing = [g is None or g != g for g in members.tolist()]
    if any(missing):
        raise ValueError(
            f"{sum(missing)} row(s) have no group. Give each row one, {instead}."
        )
    return members


def read_units(groups: Any, X: Any) -> IntArray:
    """The unit of each row, as a number."""
    members = read_groups(groups, X, "and one of its own where its unit is not known")
    numbers = {unit: place for place, unit in enumerate(dict.fromkeys(members))}
    return np.array([numbers[unit] for unit in members], dtype=np.intp)


def one_of_each(units: IntArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """One row of each unit, drawn at random among these rows; in their order."""
    drawn = rng.permutation(rows)
    return np.sort(drawn[np.unique(units[drawn], return_index=True)[1]])


def warn_of_unknown_groups(members: list[Any], known: list[Any]) -> None:
    """Warn where rows are of groups that have no threshold."""
    have = set(known)
    unknown = [group for group in members if group not in have]
    if not unknown:
        return
    names = sorted(set(unknown), key=str)
    hint = next(filter(None, (another_type(name, known) for name in names)), "")
    warnings.warn(
        f"{len(unknown)} of {len(members)} row(s) are of groups without a threshold, "
        f"and get the controlled class: {listed(names, SHOWN)}. The groups with "
        f"one are {listed(known[:SHOWN])}{' …' if len(known) > SHOWN else ''}.{hint}",
        UnknownGroupWarning,
        stacklevel=3,
    )


class UnknownWordWarning(UserWarning):
    """Rows have words that no estimator was fitted to, and get the controlled class."""


def warn_of_unseen_words(columns: WordColumns, X: Any) -> None:
    """Warn where rows have words that the estimator wasn't fitted to."""
    for name, words in columns.unseen(X).items():
        unseen = [word for word in words if word is not None]
        if unseen:
            warnings.warn(
                f"Column {name!r} has {listed(sorted(set(unseen)), SHOWN)} in "
                f"{len(unseen)} of {len(words)} row(s). The estimator was fitted to no "
                f"such word, only to {listed(columns.seen[name], SHOWN)}: "
                "these rows get the controlled class. Spell words as in fitting, or "
                "fit with more rows.",
                UnknownWordWarning,
                stacklevel=4,
            )


_Result = TypeVar("_Result")

# More calibration rows, or numbers in them, change no digit that matters.
MOST_ROWS = 1_000_000
MOST_NUMBERS = 8_000_000


@dataclass(frozen=True)
class TrainingSource(LabelledSource):
    """The rows of a source that aren't held out; labels 0, controlled, and 1."""

    source: LabelledSource
    controlled: Any
    held: Callable[[LabelledBlock], Any]
    names: tuple[str, ...]
    n_rows: int

    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """As the source's."""
        controlled, held = self.controlled, self.held

        def on_rest(block: LabelledBlock) -> _Result:
            rest = ~held(block)
            labels = (block.labels[rest] != controlled).astype(np.int64)
            return work(replace(block, rows=block.rows[rest], labels=labels))

        return self.source.fold(on_rest, merge)


def hold_out(
    source: LabelledSource, controlled: Any, size: float, seed: int
) -> tuple[TrainingSource, list[Any], bool, list[FloatArray]]:
    """Hold rows of the controlled class out, in one pass.

    Parameters
    ----------
    source : LabelledSource
    controlled : object
        The controlled class; None for the label that is sorted first.
    size : float
        The share of its rows to calibrate on; less where that is more than a million.
    seed : int

    Returns
    -------
    rest : TrainingSource
    labels : list
    incomplete : bool
        Whether any row of the controlled class misses a value, drawn or not.
    rows : list of ndarray
        Rows to calibrate on, some others of their class, and some of the other class.
    """
    if controlled is None:
        controlled = source.fold(lambda block: block.labels.min().item(), min)
    if not (isinstance(size, float) and 0.0 < size < 1.0):
        raise ValueError(
            f"calibration_size must be a share between 0 and 1 for a source, got "
            f"{size!r}: rows are drawn by a coin each."
        )
    most = min(MOST_ROWS, MOST_NUMBERS // max(len(source.names), 1))
    n_rows, names = max(source.n_rows, 1), source.names

    def held(block: LabelledBlock) -> Any:
        """A coin for every row of the controlled class.

        It depends on the seed and on where a block begins alone, so that every pass
        finds the same rows.
        """
        coins = np.random.default_rng([seed, block.start]).random(len(block.labels))
        return (coins < min(size, most / n_rows)) & (block.labels == controlled)

    def draw(block: LabelledBlock) -> Any:
        block.check_no_infinity(names)
        coins = np.random.default_rng([seed, block.start, 1]).random(len(block.labels))
        # Rules that learn, and warnings, need rows of each class beside these.
        is_held, shown = held(block), coins < 20_000 / n_rows
        mine = block.labels == controlled
        parts = (is_held, shown & mine & ~is_held, shown & ~mine)
        incomplete = bool(np.isnan(block.rows[mine]).any())
        rows = [[block.rows[part]] for part in parts]
        return set(np.unique(block.labels).tolist()), incomplete, rows

    def merge(parts: Sequence[Any]) -> Any:
        labels, incomplete, rows = zip(*parts, strict=True)
        kinds = [list(chain(*kind)) for kind in zip(*rows, strict=True)]
        return set().union(*labels), any(incomplete), kinds

    seen, incomplete, blocks = source.fold(draw, merge)
    check_label_types(seen)
    labels, rows = sorted(seen), [np.concatenate(kind) for kind in blocks]
    if not len(rows[0]):
        raise ValueError(
            f"No row of the controlled class {controlled!r} was drawn to calibrate on; "
            f"the labels are {labels[:10]}. Raise calibration_size, or bring more rows."
        )
    rest = TrainingSource(source, controlled, held, names, source.n_rows)
    return rest, labels, incomplete, rows


# A column that has this many values, as a share of the distinct rows, is continuous.
DISTINCT = 0.5
# Fewer rows that occur again are kinds, and not copies of units.
FEWEST_KINDS = 5
# A grid has this many steps at most for each of the values on it.
STEPS = 40
# From which share of repeated rows on it is said.
REPEATED = 0.05
# Pairs of equal rows that chance may have left out of a sample: six rows.
BY_CHANCE = 6


class NoPowerWarning(UserWarning):
    """A certificate holds, but no row is given to the other class."""


class RepeatedRowsWarning(Explained, UserWarning):
    """Calibration rows are copies of training rows, or of each other."""


def warn_of_repeated_rows(rows: Any, training: Any = None) -> None:
    """Warn where calibration rows are copies of training rows, or of each other.

    Independent rows coincide, too, where values are rounded or are categories. Nothing
    is said of rows that chance explains.

    Parameters
    ----------
    rows, training : array-like or dataframe of shape (n, n_columns)
        Of the controlled class; no training rows where they are not known.
    """
    tables = [rows] if training is None else [rows, training]
    try:
        numbers = [np.asarray(as_numeric_array(X), dtype=np.float64) for X in tables]
    except ValueError:
        # Columns that are not numbers.
        return
    # Most tables have a column in which no value occurs twice.
    for column in zip(*(X.T for X in numbers), strict=True):
        if (np.diff(np.sort(np.concatenate(column))) != 0.0).all():
            return
    # Complete rows, in which no zero is negative.
    complete = [X[~np.isnan(X).any(axis=1)] + 0.0 for X in numbers]
    calibrating, table = complete[0], np.ascontiguousarray(np.concatenate(complete))
    # Equal rows get equal numbers.
    factors = np.random.default_rng(0).integers(2**63, size=table.shape[1], dtype="u8")
    with np.errstate(over="ignore"):
        products = table.view(np.uint64) * (2 * factors + 1)
    numbers_of_rows = products.sum(axis=1, dtype=np.uint64)
    _, first, places, counts = np.unique(
        numbers_of_rows, return_index=True, return_inverse=True, return_counts=True
    )
    mine, others = np.split(places.ravel(), [len(calibrating)])
    trained = np.isin(mine, others)
    twice = np.bincount(mine, minlength=len(counts))[mine]
    affected = trained | (twice > 1)
    if not len(calibrating) or affected.mean() < REPEATED:
        return
    # Independent rows hardly coincide where a column has many values and these lie on
    # no grid: its smallest step is far smaller than rounding would leave it. One row
    # or a few that occur again and again are kinds, such as zeros throughout.
    distinct, on_grids = table[first], True
    for column in distinct.T:
        values = np.unique(column)
        gaps = np.diff(values)
        gaps = gaps[gaps > 1e-9 * np.ptp(values)]
        if len(values) >= DISTINCT * len(distinct) and len(gaps):
            on_grids &= bool(np.ptp(values) <= STEPS * len(values) * gaps.min())
    repeated = np.count_nonzero(counts > 1)
    kinds = on_grids or repeated < max(REPEATED * len(distinct), FEWEST_KINDS)
    # Rows of one law that took no part in fitting meet a training row about as often
    # as one of their number, of which BY_CHANCE more might have been seen.
    more = max(1.0, (len(table) - len(calibrating)) / len(calibrating))
    by_chance = more * (np.count_nonzero(twice > 1) + BY_CHANCE) / len(calibrating)
    if kinds and trained.mean() < max(REPEATED, 2.0 * by_chance):
        return
    claim = "of the calibration rows are there more than once. Copies say nothing new, "
    claim += "and are counted as if they did"
    if trained.mean() >= REPEATED:
        affected = trained
        claim = "of the calibration rows are training rows as well. The estimator "
        claim += "knows these rows, so its scores on them are not those of new rows"
    message = Message(
        f"{affected.mean():.0%} {claim}, and the certificate does not hold.",
        remedies=(
            "take copies out of the table",
            "call calibrate() with rows that took no part in fitting",
            "say by groups= which rows are of one unit, where units have several",
        ),
    )
    warn(RepeatedRowsWarning(message))
