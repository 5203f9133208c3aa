"""A class's rows in a tensor: their weights and sums, computed on its device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.missingness import LogisticMissingness, StepMissingness, once
from missratio.moments import Link, Parameters, Sums, merge_all
from missratio.objective import KLIEPObjective, Term
from missratio.rows import (
    ClassRows,
    LabelledBlock,
    LabelledSource,
    MemorySource,
    ModelWeighing,
    Normalization,
    PartlyDrawn,
    RowBlock,
    Unweighted,
    Weighing,
    WeightSums,
    class_rows,
    merge_sums,
)
from missratio.tensor import fused
from missratio.tensor.arrays import as_numpy, is_tensor

if TYPE_CHECKING:
    import torch

_Result = TypeVar("_Result")

# Rows of a block: its temporaries are a few tens of megabytes a column.
BLOCK_ROWS = 2**20
PEEKED = 256
# A pass over so many rows of a GPU takes as long as over a thousand: a third of a
# millisecond, in launching it and waiting for its sums.
GPU_CHEAP_ROWS = 1_000_000


@dataclass(frozen=True)
class TensorSample:
    """One class's complete rows and their weights, on a device, for one problem.

    Only sums leave the device. Rows are of single or double precision, sums over blocks
    of them of double.

    Parameters
    ----------
    rows : Tensor of shape (n_all_rows, n_features)
        What has no weight may be NaN.
    weights : Tensor of shape (n_all_rows,), or None
        0 where a row is missing or belongs to another class; None stands for ones.
    total : ndarray of shape (1,)
        What weighted sums are divided by.
    n_rows : int
        How many have a weight.
    centred : bool
        Whether the rows have a centre subtracted already.
    """

    rows: torch.Tensor
    weights: torch.Tensor | None
    total: FloatArray
    n_rows: int
    centred: bool = False

    @property
    def features(self) -> FloatArray:
        """All rows on the host, for a small sample."""
        rows: FloatArray = as_numpy(self.rows)[None]
        return rows

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.n_rows * int(self.rows.shape[1])

    @property
    def precision(self) -> float:
        """The relative rounding error of the rows."""
        import torch

        return float(torch.finfo(self.rows.dtype).eps)

    @property
    def cheap_rows(self) -> int:
        """How many rows a pass may have and cost no more than one of a few rows."""
        return GPU_CHEAP_ROWS if self.rows.is_cuda else 0

    def _blocks(self) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
        starts = range(0, len(self.rows), BLOCK_ROWS)
        return [
            (
                self.rows[i : i + BLOCK_ROWS],
                None if self.weights is None else self.weights[i : i + BLOCK_ROWS],
            )
            for i in starts
        ]

    def fold(
        self,
        work: Callable[[FloatArray, FloatArray | None], _Result],
        elements: int = 0,
        merge: Callable[[Sequence[_Result]], _Result] = merge_all,  # type: ignore[assignment]
    ) -> _Result:
        """Work on blocks that are brought to the host: for what is rarely asked."""
        results = []
        for rows, weights in self._blocks():
            rows, weights = _seen(rows, weights)
            if len(rows):
                own = None if weights is None else as_numpy(weights)[None]
                results.append(work(as_numpy(rows)[None], own))
        return merge(results)

    def sums(
        self,
        term_of: Link,
        at: Parameters,
        *,
        second_order: bool,
        drawn: float | None = None,
    ) -> list[Sums]:
        """Sum terms over all rows, on the device; as of `accumulate`.

        A curvature that is to be estimated is so from rows that are evenly spaced.
        """
        centre = np.zeros_like(at.coef) if at.centre is None else at.centre
        both = self._tensor(np.concatenate([at.coef, centre]))
        exponential = _is_exponential(term_of) and fused.is_available(self.rows)
        if exponential:
            sums = [_as_sums(fused.tilted_sums(self.rows, self.weights, both))]
        else:
            sums = self._plain(term_of, at, both, second_order=False)
        self._check_finite(sums)
        if not second_order and drawn is None:
            return sums
        few, times = self, 1.0
        if drawn is not None:
            few = self.every(max(1, int(1.0 / drawn)))
            times = self.n_rows / max(few.n_rows, 1)
        if exponential and len(few.rows) <= BLOCK_ROWS:
            curved = [_exponential_curvature(few.rows, few.weights, both)]
        else:
            plain = few._plain(term_of, at, both, second_order=True)
            curved = [(one.log_scale, np.asarray(one.curvature)) for one in plain]
        return [
            replace(one, curvature=matrix * (times * np.exp(scale - one.log_scale)))
            for one, (scale, matrix) in zip(sums, curved, strict=True)
        ]

    def _plain(
        self, term_of: Link, at: Parameters, both: torch.Tensor, *, second_order: bool
    ) -> list[Sums]:
        """The same block by block, in plain tensor code."""
        parts = [
            _block_sums(term_of, rows, weights, both, at, second_order)
            for rows, weights in self._blocks()
        ]
        return merge_all([part for part in parts if part])

    def plain_sums(self) -> FloatArray:
        """Σ w x over all rows, which must be finite."""
        shift = self.peek()[0].mean(axis=0, dtype=np.float64)
        shift = shift.astype(np.float32).astype(np.float64)
        zero = np.zeros((1, self.rows.shape[1]))
        at = Parameters(zero, shift[None], None)
        (found,) = self.sums(KLIEPObjective().denominator, at, second_order=False)
        total = found.slope[0] + found.value[0] * shift
        return np.asarray(total * np.exp(found.log_scale[0]))

    def _tensor(self, values: FloatArray) -> torch.Tensor:
        import torch

        return torch.as_tensor(values, dtype=self.rows.dtype, device=self.rows.device)

    def _check_finite(self, sums: list[Sums]) -> None:
        """Refuse rows that aren't finite, where they made a sum so."""
        import torch

        if all(np.isfinite(one.slope).all() for one in sums):
            return
        for rows, weights in self._blocks():
            seen = rows if weights is None else rows[weights > 0.0]
            if not bool(torch.isfinite(seen).all()):
                raise ValueError(
                    "Input X contains NaN or infinity in rows without a missingness "
                    "model. Say why values are missing, missingness={label: model}, or "
                    'take complete cases by missingness="ignore".'
                )

    def every(self, stride: int) -> TensorSample:
        """Every stride-th row, standing for all."""
        weights = None if self.weights is None else self.weights[::stride]
        rows, weights = _seen(self.rows[::stride], weights)
        rows = rows.contiguous()
        total = self.total * (len(rows) / max(self.n_rows, 1))
        return replace(self, rows=rows, weights=weights, total=total, n_rows=len(rows))

    def held(self, stride: int, centre: FloatArray) -> TensorSample:
        """Every stride-th row standing for all, centred."""
        part = self.every(stride)
        if self.centred:
            return part
        return replace(part, rows=part.rows - self._tensor(centre[0]), centred=True)

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample, on the host."""
        return self._few

    @cached_property
    def _few(self) -> FloatArray:
        few = self.every(1 + len(self.rows) // (4 * PEEKED)).rows
        if not len(few):
            few = self.every(1).rows
        peeked: FloatArray = as_numpy(few[:: 1 + len(few) // PEEKED])[None]
        return peeked

    def problems(self, which: slice | BoolArray) -> TensorSample:
        """Itself: there is one problem."""
        return self


def _is_exponential(term_of: Link) -> bool:
    """Whether terms are exp(s), as KLIEP's of the denominator."""
    owner = getattr(term_of, "__self__", None)
    return type(owner) is KLIEPObjective and term_of.__name__ == "denominator"


def _as_sums(found: fused.TiltedSums) -> Sums:
    return Sums(
        np.array([found.log_scale]),
        np.array([found.total]),
        found.first[None],
        None,
        np.array([found.lowest]),
        np.array([found.highest]),
    )


def _seen(
    rows: torch.Tensor, weights: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows with a weight, and the weights; others may hold NaN."""
    if weights is None:
        return rows, None
    seen = weights > 0.0
    return rows[seen], weights[seen]


def _exponential_curvature(
    rows: torch.Tensor, weights: torch.Tensor | None, coef_and_centre: torch.Tensor
) -> tuple[FloatArray, FloatArray]:
    """Log scale and Σ w exp(s)(x − c)(x − c)ᵀ of a few rows, in few launches."""
    import torch

    rows, weights = _seen(rows, weights)
    coef, centre = coef_and_centre
    features = rows - centre
    score = features @ coef
    largest = score.max()
    mass = torch.exp(score - largest)
    if weights is not None:
        mass = mass * weights
    second = (features.T @ (mass[:, None] * features)).double()
    found = torch.cat([second.ravel(), largest.double()[None]]).cpu().numpy()
    n_columns = len(coef)
    return found[-1:], found[:-1].reshape(1, n_columns, n_columns)


def _block_sums(
    term_of: Link,
    rows: torch.Tensor,
    weights: torch.Tensor | None,
    coef_and_centre: torch.Tensor,
    at: Parameters,
    second_order: bool,
) -> list[Sums] | None:
    """The sums of a block in plain tensor code; None where no row has a weight."""
    import torch

    rows, weights = _seen(rows, weights)
    if not len(rows):
        return None
    coef, centre = coef_and_centre
    features = rows - centre
    score = features @ coef
    if at.intercept is not None:
        score = score + float(at.intercept[0])
    if _is_exponential(term_of):
        largest = score.max()
        value = torch.exp(score - largest)
        terms: Sequence[Any] = [(value, value, value, float(largest))]
    else:
        terms = _host_terms(term_of, score)
    lowest, highest = (np.array([float(end)]) for end in (score.min(), score.max()))
    return [
        _term_sums(term, features, weights, at, second_order, lowest, highest)
        for term in terms
    ]


def _host_terms(term_of: Link, score: torch.Tensor) -> list[Any]:
    """Terms of any objective: evaluated on the host, in double precision.

    Scores, one number a row, travel there and three back.
    """
    import torch

    found = term_of(as_numpy(score).astype(np.float64)[None])
    terms = (found,) if isinstance(found, Term) else found

    def back(values: FloatArray) -> torch.Tensor:
        return torch.as_tensor(values[0], dtype=score.dtype, device=score.device)

    return [
        (
            back(term.value),
            back(term.slope),
            back(term.curvature),
            float(np.ravel(term.log_scale)[0]),
        )
        for term in terms
    ]


def _term_sums(
    term: Any,
    features: torch.Tensor,
    weights: torch.Tensor | None,
    at: Parameters,
    second_order: bool,
    lowest: FloatArray,
    highest: FloatArray,
) -> Sums:
    import torch

    value, slope, curvature, log_scale = term
    if weights is not None:
        value, slope, curvature = (weights * each for each in (value, slope, curvature))
    ones = [] if at.intercept is None else [slope.sum(dtype=torch.float64)[None]]
    first = torch.cat([(slope @ features).double(), *ones])
    second = None
    if second_order:
        if at.intercept is not None:
            border = torch.ones_like(features[:, :1])
            features = torch.cat([features, border], dim=1)
        second = as_numpy((features.T @ (curvature[:, None] * features)).double())[None]
    return Sums(
        np.array([log_scale]),
        np.array([float(value.sum(dtype=torch.float64))]),
        as_numpy(first)[None],
        second,
        lowest,
        highest,
    )


DRAWN_ROWS = 4096


@dataclass(frozen=True)
class TensorSource(PartlyDrawn):
    """The rows of one class in a tensor.

    What is asked of them often, sums and samples, is answered on the device; for the
    rest blocks of rows are brought to the host.

    Parameters
    ----------
    tensor : Tensor of shape (n_all_rows, n_columns)
    chosen : Tensor of bool of shape (n_all_rows,), or None
        The class's rows; None for all.
    n_rows : int
    weights_of_rows : Tensor of shape (n_all_rows,), or None
        Of complete rows, 0 elsewhere; None for ones.
    drawn : MemorySource
        A few rows, on the host.
    feature_sums, complete_sums : WeightSums
    """

    tensor: torch.Tensor
    chosen: torch.Tensor | None
    n_rows: int
    weights_of_rows: torch.Tensor | None
    drawn: MemorySource
    feature_sums: WeightSums
    complete_sums: WeightSums
    weights: None = None

    def sample(self, total: FloatArray) -> TensorSample:
        """The complete rows as a sample of one problem."""
        n_rows = int(self.complete_sums.count[0])
        return TensorSample(self.tensor, self.weights_of_rows, total, n_rows)

    def fold(
        self,
        work: Callable[[RowBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
        elements: int = 0,
    ) -> _Result:
        """Work on blocks that are brought to the host, and merge in their order."""
        results = []
        for start in range(0, len(self.tensor), BLOCK_ROWS):
            rows = self.tensor[start : start + BLOCK_ROWS]
            if self.chosen is not None:
                rows = rows[self.chosen[start : start + BLOCK_ROWS]]
            if len(rows):
                host = as_numpy(rows)
                results.append(work(RowBlock(host, host, None, start)))
        return merge(results)


def tensor_classes(
    X: torch.Tensor, y: Any, missingness: Any, normalize: Normalization
) -> tuple[Any, ClassRows, ClassRows]:
    """The labels of a tensor's rows, and its numerator's and denominator's rows.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_columns)
        float32 or float64, NaN where missing.
    y : Tensor or array-like of shape (n_rows,)
        Two labels.
    missingness, normalize
        As an estimator has them.
    """
    import torch

    if X.ndim != 2 or not X.dtype.is_floating_point or X.dtype.itemsize < 4:
        raise ValueError(
            "X must be a tensor of two dimensions, of float32 or float64; got "
            f"{X.dtype} of shape {tuple(X.shape)}. Use X.float()."
        )
    marks = y if is_tensor(y) else torch.as_tensor(np.asarray(y))
    marks = marks.to(X.device)
    if marks.shape != X.shape[:1]:
        raise ValueError(
            f"y must have a label for each of the {len(X)} rows of X; got shape "
            f"{tuple(marks.shape)}."
        )
    low, high = marks.min(), marks.max()
    above = marks == high
    n_above = int(above.sum())
    if not bool((above | (marks == low)).all()) or not 0 < n_above < len(X):
        found = torch.unique(marks)[:10].tolist()
        raise ValueError(
            f"y has the labels {found}: a ratio needs rows of two classes, the "
            "numerator and the denominator."
        )
    labels = [low.item(), high.item()]
    found = []
    for label, chosen, count in (
        (labels[1], above, n_above),
        (labels[0], ~above, len(X) - n_above),
    ):
        rows, mask = _own_rows(X, chosen, count)
        weighing = class_rows(None, label, missingness, normalize, None).weighing
        source = _weighed(rows, mask, count, weighing, label)
        found.append(class_rows(source, label, missingness, normalize, None))
    return np.array(labels), found[0], found[1]


def _own_rows(
    X: torch.Tensor, chosen: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A class's rows as a view where they lie together, else all with a mask."""
    for part in (slice(0, count), slice(len(X) - count, len(X))):
        if bool(chosen[part].all()):
            return X[part], None
    return X, chosen


def _weighed(
    rows: torch.Tensor,
    mask: torch.Tensor | None,
    count: int,
    weighing: Weighing,
    label: Any,
) -> TensorSource:
    """One pass over a class's rows: sums of features and of complete rows' weights."""
    import torch

    step = 1 + len(rows) // DRAWN_ROWS
    few = rows[::step] if mask is None else rows[::step][mask[::step]]
    host = as_numpy(few.contiguous())
    drawn = MemorySource.of(host, host)
    whole = None if mask is None else mask.to(rows.dtype)
    if isinstance(weighing, Unweighted):
        ones = np.ones(1)
        sums = TensorSample(rows, whole, count * ones, count).plain_sums()
        each = count * ones
        counts = WeightSums(count, float(count), each, each, each, ones, each, sums)
        return TensorSource(rows, mask, count, whole, drawn, counts, counts)
    weights = torch.zeros(len(rows), dtype=rows.dtype, device=rows.device)
    by_feature, by_row = [], []
    for start in range(0, len(rows), BLOCK_ROWS):
        place = slice(start, start + BLOCK_ROWS)
        block = rows[place]
        own = block if mask is None else block[mask[place]]
        entries = device_weights(weighing, own, label)
        complete = entries
        if entries.ndim == 2:
            # Columns that go missing together count once.
            alone = weighing.groups
            kept = entries if alone is None else entries[:, once(alone)]
            complete = kept.prod(dim=1)
        if mask is None:
            weights[place] = complete.to(rows.dtype)
        else:
            weights[place][mask[place]] = complete.to(rows.dtype)
        by_feature.append(_sums(own, entries))
        by_row.append(_sums(own[:, :0], complete))
    return TensorSource(
        rows, mask, count, weights, drawn, merge_sums(by_feature), merge_sums(by_row)
    )


def _sums(rows: torch.Tensor, weights: torch.Tensor) -> WeightSums:
    """As `weighted_sums`, on the device, in double precision."""
    own = weights if weights.ndim == 2 else weights[:, None]
    values = rows.double().nan_to_num(0.0)
    found = (own > 0).sum(0), own.sum(0), (own**2).sum(0), own.max(0).values
    count, total, squares, largest = (as_numpy(each.double()) for each in found)
    sums = as_numpy((own * values).sum(0)) if rows.shape[1] else np.zeros(0)
    n_rows = len(rows)
    return WeightSums(
        n_rows, float(n_rows), count, total, squares, largest, total, sums
    )


def device_weights(weighing: Weighing, rows: torch.Tensor, label: Any) -> torch.Tensor:
    """Weights of rows or entries, 0 where missing, in double precision.

    The package's own parametric models are evaluated on the device, others on the host.
    """
    import torch

    values = rows.double()
    missing = values.isnan()
    if bool(values.isinf().any()):
        raise ValueError(
            f"Class {label!r} has infinite values. Replace them by NaN if they are "
            "missing, or by numbers."
        )
    model = weighing.model if isinstance(weighing, ModelWeighing) else None
    if type(model) in (LogisticMissingness, StepMissingness):
        log_odds = _log_odds(model, values)
        if log_odds.ndim == 1:
            missing = missing.any(dim=1)
        if bool((log_odds.sigmoid() >= 1.0).logical_and(~missing).any()):
            raise ValueError(
                f"Class {label!r}: φ is 1 for some rows: what is always missing can't "
                "be weighted back."
            )
        # 1/(1 − φ), without a difference that loses digits where φ is close to 1.
        return torch.where(missing, 0.0, 1.0 + log_odds.exp())
    host = as_numpy(rows)
    found = weighing.weigh(RowBlock(host, host, None, 0))
    if found is None:
        found = np.ones(len(host))
    return torch.as_tensor(found, dtype=torch.float64, device=rows.device)


def _log_odds(model: Any, values: torch.Tensor) -> torch.Tensor:
    """Of φ by a logistic or step model."""
    import torch

    def tensor(parameter: Any) -> torch.Tensor:
        found: torch.Tensor = torch.as_tensor(
            np.array(parameter), dtype=torch.float64, device=values.device
        )
        return found

    if isinstance(model, LogisticMissingness):
        slope = tensor(model.coef)
        linear = values @ slope if model.rowwise and slope.ndim else values * slope
        if model.rowwise and linear.ndim == 2:
            linear = linear.sum(dim=1)
        return tensor(model.intercept) + linear
    direction = tensor(model.direction)
    beyond = values @ direction if model.rowwise else values * direction
    above = beyond > tensor(model.threshold)
    return torch.where(above, tensor(model.probability).logit(), -torch.inf)


@dataclass(frozen=True)
class LabelledTensor(LabelledSource):
    """A tensor's rows brought to the host block by block, with their labels."""

    rows: torch.Tensor
    labels: torch.Tensor
    names: tuple[str, ...]
    n_rows: int

    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """Work on blocks in their order, and merge."""
        results = []
        for start in range(0, self.n_rows, BLOCK_ROWS):
            place = slice(start, start + BLOCK_ROWS)
            rows, labels = as_numpy(self.rows[place]), as_numpy(self.labels[place])
            results.append(work(LabelledBlock(rows, labels, start, "X")))
        return merge(results)


def labelled_tensor(X: torch.Tensor, y: Any) -> LabelledTensor:
    """A tensor and its labels as a source that is read block by block."""
    import torch

    marks = y if is_tensor(y) else torch.as_tensor(np.asarray(y))
    names = tuple(f"x{j}" for j in range(int(X.shape[1])))
    return LabelledTensor(X, marks, names, len(X))
