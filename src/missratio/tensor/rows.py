"""A class's rows in a tensor: their weights and sums, computed on its device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.engine import AnySample, Work
from missratio.missingness import LogisticMissingness, once
from missratio.moments import Link, Parameters, Sums
from missratio.objective import KLIEPObjective
from missratio.rows import ClassRows, Normalization, RowBlock, Source, WeightSums
from missratio.rows.source import BlockWork, Merge, Result
from missratio.tensor.arrays import as_tensor, has_kernels, like, on_host

if TYPE_CHECKING:
    import torch

# A block has this many rows: its temporaries take a few tens of megabytes a column.
BLOCK_ROWS = 2**20
DRAWN_ROWS = 4096
PEEKED = 256
# On a GPU a pass over this many rows takes as long as one over a thousand: launching it
# and waiting for its sums take a third of a millisecond.
GPU_CHEAP_ROWS = 1_000_000


@dataclass(eq=False)
class TensorSample(AnySample):
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

    def __post_init__(self) -> None:
        """Note how large it is, and how precise."""
        double = self.rows.element_size() == 8
        self.size = self.n_rows * int(self.rows.shape[1])
        self.precision = float(np.finfo(np.float64 if double else np.float32).eps)
        self.cheap_rows = GPU_CHEAP_ROWS if self.rows.is_cuda else 0

    def _blocks(self) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        """Rows that have a weight, and their weights."""
        for i in range(0, len(self.rows), BLOCK_ROWS):
            weights = None if self.weights is None else self.weights[i : i + BLOCK_ROWS]
            rows, weights = _seen(self.rows[i : i + BLOCK_ROWS], weights)
            if len(rows):
                yield rows, weights

    def fold(
        self, work: Work[Result], merge: Merge[Result], elements: int = 0
    ) -> Result:
        """Work on blocks that are brought to the host: for what is rarely asked."""
        results = []
        for rows, weights in self._blocks():
            mass = None if weights is None else on_host(weights)[None]
            results.append(work(on_host(rows)[None], mass))
        return merge(results)

    def log_masses(self, coef: FloatArray) -> FloatArray:
        """log(w·exp(θᵀf)) of each row."""
        parts = []
        for rows, weights in self._blocks():
            exact = rows.double()
            scores = exact @ like(exact, coef[0])
            scores = scores if weights is None else scores + weights.double().log()
            parts.append(on_host(scores))
        return np.concatenate(parts)

    def sums(
        self,
        term_of: Link,
        at: Parameters,
        *,
        second_order: bool,
    ) -> Sums:
        """Sum exp(s), which is KLIEP's term, over all rows on the device."""
        centre = np.zeros_like(at.coef) if at.centre is None else at.centre
        both = like(self.rows, np.concatenate([at.coef, centre]))
        fuses = has_kernels(self.rows)
        if fuses:
            from missratio.tensor.fused import tilted_sums

            sums = tilted_sums(self.rows, self.weights, both)
        else:
            sums = self._block_sums(both, second_order=second_order)
        if not np.isfinite(sums.slope).all():
            self.refuse_odd()
        if second_order and fuses:
            curved = self._block_sums(both, second_order=True)
            factor = np.exp(curved.log_scale - sums.log_scale)
            sums = replace(sums, curvature=factor * np.asarray(curved.curvature))
        return sums

    def _block_sums(self, both: torch.Tensor, *, second_order: bool) -> Sums:
        """The same in plain tensor code, block by block."""
        import torch

        coef, centre = both
        n = len(coef)
        parts = []
        for rows, weights in self._blocks():
            features = rows - centre
            score = features @ coef
            highest = score.max()
            mass = (score - highest).exp()
            mass = mass if weights is None else weights * mass
            total = mass.sum(dtype=torch.float64)
            flat = [highest, total, score.min(), mass @ features]
            if second_order:
                flat.append(features.T @ (mass[:, None] * features))
            # Only here the host waits for the device.
            numbers = on_host(torch.cat([some.double().ravel() for some in flat]))
            scale, value, lowest = numbers[:3, None]
            slope, second = numbers[None, 3 : 3 + n], None
            if second_order:
                second = numbers[None, 3 + n :].reshape(1, n, n)
            parts.append(Sums(scale, value, slope, second, lowest, scale))
        return Sums.merged(parts)

    def plain_sums(self) -> FloatArray:
        """Σ w x over all rows, which must be finite."""
        shift = self.peek()[0].mean(axis=0, dtype=np.float64)
        shift = shift.astype(np.float32).astype(np.float64)
        at = Parameters(np.zeros((1, len(shift))), shift[None], None)
        sums = self.sums(KLIEPObjective().denominator, at, second_order=False)
        total = sums.slope[0] + sums.value[0] * shift
        return np.asarray(total * np.exp(sums.log_scale[0]))

    def refuse_odd(self) -> None:
        """Refuse rows that aren't finite."""
        if not all(bool(rows.isfinite().all()) for rows, _ in self._blocks()):
            raise ValueError(
                "Input X contains NaN or infinity in rows without a missingness model. "
                'Give missingness={label: model}, or missingness="ignore".'
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
        return replace(part, rows=part.rows - like(self.rows, centre[0]), centred=True)

    @cached_property
    def _peeked(self) -> FloatArray:
        few = self.every(1 + len(self.rows) // (4 * PEEKED)).rows
        few = few if len(few) else self.every(1).rows
        return np.asarray(on_host(few[:: 1 + len(few) // PEEKED])[None])

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample, on the host."""
        return self._peeked

    def problems(
        self, which: slice | BoolArray, width: int | None = None
    ) -> TensorSample:
        """Itself: there is one problem."""
        return self


def _seen(
    rows: torch.Tensor, weights: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows with a weight, and the weights; others may hold NaN."""
    if weights is None:
        return rows, None
    seen = weights > 0.0
    return rows[seen], weights[seen]


@dataclass(frozen=True)
class TensorSource(Source):
    """The rows of one class in a tensor.

    What is asked of them often, sums and samples, is answered on the device; for the
    rest blocks of rows are brought to the host.

    Parameters
    ----------
    tensor : Tensor of shape (n_all_rows, n_columns)
    chosen : Tensor of bool of shape (n_all_rows,), or None
        The class's rows; None for all.
    n_rows : int
    table, features : ndarray of shape (n_drawn, n_columns)
        A few rows, on the host.
    row_weights : Tensor of shape (n_all_rows,), or None
        Of complete rows, 0 elsewhere; None for ones.
    first_pass : pair of WeightSums
        Of the features, and of complete rows.
    """

    tensor: torch.Tensor
    chosen: torch.Tensor | None
    n_rows: int
    table: FloatArray
    features: FloatArray
    row_weights: torch.Tensor | None = None
    first_pass: tuple[WeightSums, WeightSums] | None = None

    def sample(self, total: FloatArray) -> TensorSample:
        """The complete rows as a sample of one problem."""
        assert self.first_pass is not None
        n_rows = int(self.first_pass[1].count[0])
        return TensorSample(self.tensor, self.row_weights, total, n_rows)

    def feature_sums(self) -> WeightSums:
        """Sums of the features, by a pass of its own where rows weigh one."""
        assert self.first_pass is not None
        sums = self.first_pass[0]
        if sums.sums.size:
            return sums
        return replace(sums, sums=self.sample(sums.mass).plain_sums())

    def fold(
        self, work: BlockWork[Result], merge: Merge[Result], elements: int = 0
    ) -> Result:
        """Work on blocks that are brought to the host, and merge in their order."""
        results = []
        for start in range(0, len(self.tensor), BLOCK_ROWS):
            rows = self.tensor[start : start + BLOCK_ROWS]
            if self.chosen is not None:
                rows = rows[self.chosen[start : start + BLOCK_ROWS]]
            if len(rows):
                host = on_host(rows)
                results.append(work(RowBlock(host, host, start=start)))
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
    if X.ndim != 2 or not X.dtype.is_floating_point or X.dtype.itemsize < 4:
        raise ValueError(
            "X must be a tensor of two dimensions, of float32 or float64; got "
            f"{X.dtype} of shape {tuple(X.shape)}. Use X.float()."
        )
    marks = as_tensor(y).to(X.device)
    if marks.shape != X.shape[:1]:
        raise ValueError(
            f"y must have a label for each of the {len(X)} rows of X; got shape "
            f"{tuple(marks.shape)}."
        )
    low, high = marks.min(), marks.max()
    above = marks == high
    n_above = int(above.sum())
    if not bool((above | (marks == low)).all()) or not 0 < n_above < len(X):
        raise ValueError(
            f"y has the labels {marks.unique()[:10].tolist()}: a ratio needs rows of "
            "two classes, the numerator and the denominator."
        )
    classes = []
    for label, chosen, count in (
        (high.item(), above, n_above),
        (low.item(), ~above, len(X) - n_above),
    ):
        rows, mask = X, chosen
        for part in (slice(0, count), slice(len(X) - count, len(X))):
            if bool(chosen[part].all()):
                # They lie together: a view without a mask.
                rows, mask = X[part], None
        step = 1 + len(rows) // DRAWN_ROWS
        few = rows[::step] if mask is None else rows[::step][mask[::step]]
        drawn = on_host(few.contiguous())
        source = TensorSource(rows, mask, count, drawn, drawn)
        weighed = ClassRows.of(source, label, missingness, normalize)
        classes.append(replace(weighed, source=_first_pass(source, weighed)))
    return np.array([low.item(), high.item()]), classes[0], classes[1]


def _first_pass(source: TensorSource, weighed: ClassRows) -> TensorSource:
    """One pass over a class's rows: sums of features and of complete rows' weights."""
    import torch

    rows, mask, count = source.tensor, source.chosen, source.n_rows
    if weighed.plain:
        weights = None if mask is None else mask.to(rows.dtype)
        n = np.full(1, float(count))
        # Features are summed up later, since only one class of two needs them.
        sums = WeightSums(count, n, n, n, np.ones(1), n, np.empty(0))
        return replace(source, row_weights=weights, first_pass=(sums, sums))
    weights = rows.new_zeros(len(rows))
    model = weighed.model
    if type(model) is LogisticMissingness and not model.rowwise and has_kernels(rows):
        from missratio.tensor.fused import logistic_sums

        lines = np.empty((2, rows.shape[1]))
        lines[0], lines[1] = model.intercept, model.coef
        given = torch.as_tensor(lines, device=rows.device)
        entries, complete = logistic_sums(rows, mask, given, weights)
        # Infinite values, and φ of 1, are refused below.
        # From about this weight on φ rounds to 1.
        if np.isfinite(entries).all() and entries[3].max() < 2.0**52:
            n_seen, total, squares, largest, first = entries
            sums = WeightSums(count, n_seen, total, squares, largest, total, first)
            n_seen, total, squares, largest = complete[:, None]
            none = np.empty(0)
            whole = WeightSums(count, n_seen, total, squares, largest, total, none)
            return replace(source, row_weights=weights, first_pass=(sums, whole))
    by_feature: list[WeightSums] = []
    by_row: list[WeightSums] = []
    for start in range(0, len(rows), BLOCK_ROWS):
        place = slice(start, start + BLOCK_ROWS)
        chosen = slice(None) if mask is None else mask[place]
        block = rows[place][chosen]
        entries = complete = device_weights(weighed, block)
        if entries.ndim == 2:
            # Columns that go missing together count once.
            groups = weighed.groups
            complete = entries if groups is None else entries[:, once(groups)]
            complete = complete.prod(dim=1)
        weights[place][chosen] = complete.to(rows.dtype)
        values = block.double().nan_to_num(0.0)
        for parts, w, x in (
            (by_feature, entries, values),
            (by_row, complete, values[:, :0]),
        ):
            # `weighted_sums` does the same on the host.
            w = w if w.ndim == 2 else w[:, None]
            n_seen, total, squares = (w > 0).sum(0), w.sum(0), (w**2).sum(0)
            made = (n_seen, total, squares, w.amax(0), total, (w * x).sum(0))
            parts.append(WeightSums(len(x), *(on_host(s.double()) for s in made)))
    both = WeightSums.merged(by_feature), WeightSums.merged(by_row)
    return replace(source, row_weights=weights, first_pass=both)


def device_weights(weighed: ClassRows, rows: torch.Tensor) -> torch.Tensor:
    """Weights of rows or entries, 0 where missing, in double precision.

    Models that give their log-odds are evaluated on the device, others on the host.
    """
    import torch

    values, model = rows.double(), weighed.model
    if bool(values.isinf().any()):
        raise ValueError(
            f"Class {weighed.label!r} has infinite values. Replace them by NaN if they "
            "are missing, or by numbers."
        )
    log_odds = None if model is None else model.log_odds(values, torch)
    if log_odds is None:
        host = on_host(rows)
        weights = weighed.weigh(RowBlock(host, host))
        return like(values, weights)
    missing = values.isnan() if log_odds.ndim == 2 else values.isnan().any(dim=1)
    if bool((log_odds.sigmoid() >= 1.0).logical_and(~missing).any()):
        raise ValueError(
            f"Class {weighed.label!r}: φ is 1 for some rows: what is always missing "
            "can't be weighted back."
        )
    # This is 1/(1 − φ) without a difference, which loses digits where φ is close to 1.
    return torch.where(missing, 0.0, 1.0 + log_odds.exp())
