"""Both classes of a labelled tensor, and what their rows weigh, found on its device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from missratio._base.typing import FloatArray
from missratio.missingness import LogisticMissingness, StepMissingness, once
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
from missratio.tensor._arrays import as_numpy, is_tensor
from missratio.tensor._sample import BLOCK_ROWS, TensorSample

if TYPE_CHECKING:
    import torch

_Result = TypeVar("_Result")

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
