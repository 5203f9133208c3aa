"""KLIEP's sums over rows on a GPU in one reading of them.

A program of the Triton kernel reads tiles of rows; score, exponential, Σ v and Σ v·x of
a tile come from registers, and programs' sums are added in double precision and in
their order, so that digits don't depend on the device's scheduling. On an H200 a pass
over 10⁸ × 64 float32 rows takes 5.7 ms, 4.5 TB/s, with weights or without; a running
maximum within the kernel takes 8.2 ms, and 14 with weights. So exponentials aren't
scaled at first, as scores of centred rows lie about zero; where the largest turns out
to be far from it, the pass is made again, scaled by that.

The first pass over a class that loses entries by a logistic φ is one reading, too:
weights and their sums are computed in double precision as rows go by. So is a score.

Importing this module imports Triton.
"""

# mypy: ignore-errors

import math
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from missratio.moments import Sums

ROWS_PER_PROGRAM = 8192
# A tile has this many numbers, as many as four warps hold in registers twice.
TILE_NUMBERS = 2048
WARPS, STAGES = 4, 4
# Exponentials of larger numbers, summed up, may leave the range of single precision.
LARGEST_EXPONENT = 60.0


def tilted_sums(rows: Any, weights: Any | None, coef_and_centre: Any) -> Sums:
    """Σ v and Σ v(x − c) with v = w exp(s − log_scale) and s = θᵀ(x − c), over rows.

    Parameters
    ----------
    rows : Tensor of shape (n_rows, n_columns)
        float32 or float64. Rows of no weight may hold NaN.
    weights : Tensor of shape (n_rows,), or None
        Of the rows' type.
    coef_and_centre : Tensor of shape (2, n_columns)
        θ and c, of the rows' type.
    """
    sums = _launch(rows, weights, coef_and_centre, 0.0)
    if LARGEST_EXPONENT < abs(sums.highest[0]) < math.inf:
        # The kernel takes it in single precision.
        scale = float(np.float32(sums.highest[0]))
        sums = _launch(rows, weights, coef_and_centre, scale)
    return sums


def _launch(
    rows: Any, weights: Any | None, coef_and_centre: Any, log_scale: float
) -> Sums:
    n_rows, n_columns = rows.shape
    programs, shape = _shape(n_rows, n_columns)
    # Each program has sums and extremes; the lowest score is negated, so that the
    # largest number is wanted of both.
    new = {"dtype": torch.float64, "device": rows.device}
    sums = torch.empty((programs, 1 + n_columns), **new)
    ends = torch.empty((programs, 2), **new)
    with torch.cuda.device_of(rows):
        _tilted_sums[(programs,)](
            rows, rows if weights is None else weights, coef_and_centre, sums, ends,
            n_rows, rows.stride(0), n_columns, log_scale,
            **shape, STAGES=STAGES, WEIGHTED=weights is not None, num_warps=WARPS,
        )  # fmt: skip
    # Only here the host waits for the device.
    totals = torch.cat([sums.sum(dim=0), ends.amax(dim=0)]).cpu().numpy()[None]
    value, slope, lowest = totals[:, 0], totals[:, 1:-2], -totals[:, -2]
    return Sums(np.array([log_scale]), value, slope, None, lowest, totals[:, -1])


@triton.jit(do_not_specialize=["n_rows", "log_scale"])
def _tilted_sums(
    rows, weights, coef_and_centre, sums, ends, n_rows, stride, n_columns, log_scale,
    WIDTH: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr,
    STAGES: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """The sums of one program's rows: total, first moments, extreme scores.

    Each place in a tile has sums of its own, so that threads meet only at the end; rows
    of no weight are read all the same, as waiting for weights takes longer.
    """
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, WIDTH)
    inside = columns < n_columns
    theta = tl.load(coef_and_centre + columns, mask=inside, other=0.0)
    shift = tl.load(coef_and_centre + n_columns + columns, mask=inside, other=0.0)
    first = tl.zeros([TILE, WIDTH], dtype=theta.dtype)
    total = tl.zeros([TILE], dtype=theta.dtype)
    highest = tl.full([TILE], float("-inf"), theta.dtype)
    lowest = tl.full([TILE], float("inf"), theta.dtype)
    start = program * (TILE * TILES)
    for k in tl.range(0, TILES, num_stages=STAGES):
        index = start + k * TILE + tl.arange(0, TILE)
        counted = index < n_rows
        if WEIGHTED:
            weight = tl.load(weights + index, mask=counted, other=0.0)
        place = rows + index[:, None] * stride + columns[None, :]
        x = tl.load(place, mask=counted[:, None] & inside[None, :], other=0.0)
        x = x - shift[None, :]
        if WEIGHTED:
            counted = counted & (weight > 0.0)
            x = tl.where(counted[:, None], x, 0.0)
        score = tl.sum(x * theta[None, :], axis=1)
        mass = tl.exp(score - log_scale)
        if WEIGHTED:
            mass = mass * weight
        mass = tl.where(counted, mass, 0.0)
        highest = tl.maximum(highest, tl.where(counted, score, float("-inf")))
        lowest = tl.minimum(lowest, tl.where(counted, score, float("inf")))
        total += mass
        first += mass[:, None] * x
    base = sums + program * (1 + n_columns)
    tl.store(base, tl.sum(total.to(tl.float64), axis=0))
    tl.store(base + 1 + columns, tl.sum(first.to(tl.float64), axis=0), mask=inside)
    tl.store(ends + 2 * program, -tl.min(lowest, axis=0).to(tl.float64))
    tl.store(ends + 2 * program + 1, tl.max(highest, axis=0).to(tl.float64))


def linear_scores(rows: Any, coef: Any, intercept: float) -> Any:
    """Xθ + intercept, in one reading of the rows.

    Parameters
    ----------
    rows : Tensor of shape (n_rows, n_columns)
    coef : Tensor of shape (n_columns,)
        Of the rows' type.
    intercept : float
    """
    n_rows, n_columns = rows.shape
    scores = torch.empty(n_rows, dtype=rows.dtype, device=rows.device)
    programs, shape = _shape(n_rows, n_columns)
    with torch.cuda.device_of(rows):
        _scores[(programs,)](
            rows, coef, scores, n_rows, rows.stride(0), n_columns, intercept,
            **shape, num_warps=WARPS,
        )  # fmt: skip
    return scores


def logistic_sums(
    rows: Any, chosen: Any | None, parameters: Any, weights: Any
) -> tuple[np.ndarray, np.ndarray]:
    """What entries weigh that a logistic φ loses, summed up over rows.

    Parameters
    ----------
    rows : Tensor of shape (n_rows, n_columns)
        NaN where missing.
    chosen : Tensor of bool of shape (n_rows,), or None
        The rows that count.
    parameters : Tensor of float64 of shape (2, n_columns)
        Intercepts and slopes.
    weights : Tensor of shape (n_rows,)
        The weights of complete rows are written here, 0 for others.

    Returns
    -------
    by_feature : ndarray of shape (5, n_columns)
        Number observed, Σ w, Σ w², the largest w, and Σ w x.
    by_row : ndarray of shape (4,)
        The same of complete rows, without the last.
    """
    n_rows, n_columns = rows.shape
    programs, shape = _shape(n_rows, n_columns)
    new = {"dtype": torch.float64, "device": rows.device}
    sums = torch.empty((programs, 5 * n_columns + 4), **new)
    with torch.cuda.device_of(rows):
        _logistic_sums[(programs,)](
            rows, rows if chosen is None else chosen.view(torch.uint8), parameters,
            weights, sums, n_rows, rows.stride(0), n_columns,
            **shape, MASKED=chosen is not None, num_warps=WARPS,
        )  # fmt: skip
    totals, largest = sums.sum(dim=0).cpu().numpy(), sums.amax(dim=0).cpu().numpy()
    by_feature, by_row = totals[:-4].reshape(5, n_columns), totals[-4:]
    by_feature[3], by_row[3] = largest[:-4].reshape(5, n_columns)[3], largest[-1]
    return by_feature, by_row


def _shape(n_rows: int, n_columns: int) -> tuple[int, dict[str, int]]:
    """How many programs there are, and the shape of a program's tiles."""
    width = max(16, 1 << (n_columns - 1).bit_length())
    tile = max(4, TILE_NUMBERS // width)
    shape = {"WIDTH": width, "TILE": tile, "TILES": ROWS_PER_PROGRAM // tile}
    return -(-n_rows // ROWS_PER_PROGRAM), shape


@triton.jit(do_not_specialize=["n_rows", "intercept"])
def _scores(
    rows, coef, scores, n_rows, stride, n_columns, intercept,
    WIDTH: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """The scores of one program's rows."""
    start = tl.program_id(0).to(tl.int64) * (TILE * TILES)
    columns = tl.arange(0, WIDTH)
    inside = columns < n_columns
    theta = tl.load(coef + columns, mask=inside, other=0.0)
    for k in tl.range(0, TILES, num_stages=4):
        index = start + k * TILE + tl.arange(0, TILE)
        counted = index < n_rows
        place = rows + index[:, None] * stride + columns[None, :]
        x = tl.load(place, mask=counted[:, None] & inside[None, :], other=0.0)
        score = tl.sum(x * theta[None, :], axis=1) + intercept
        tl.store(scores + index, score, mask=counted)


@triton.jit(do_not_specialize=["n_rows"])
def _logistic_sums(
    rows, chosen, parameters, weights, sums, n_rows, stride, n_columns,
    WIDTH: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """The sums of one program's rows, and the weights of its complete ones."""
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, WIDTH)
    inside = columns < n_columns
    intercept = tl.load(parameters + columns, mask=inside, other=float("-inf"))
    slope = tl.load(parameters + n_columns + columns, mask=inside, other=0.0)
    count = tl.zeros([WIDTH], dtype=tl.float64)
    total = tl.zeros([WIDTH], dtype=tl.float64)
    squares = tl.zeros([WIDTH], dtype=tl.float64)
    largest = tl.zeros([WIDTH], dtype=tl.float64)
    first = tl.zeros([WIDTH], dtype=tl.float64)
    row_count = tl.zeros([TILE], dtype=tl.float64)
    row_total = tl.zeros([TILE], dtype=tl.float64)
    row_squares = tl.zeros([TILE], dtype=tl.float64)
    row_largest = tl.zeros([TILE], dtype=tl.float64)
    start = program * (TILE * TILES)
    for k in range(TILES):
        index = start + k * TILE + tl.arange(0, TILE)
        counted = index < n_rows
        if MASKED:
            mark = tl.load(chosen + index, mask=counted, other=0)
            counted = counted & (mark != 0)
        place = rows + index[:, None] * stride + columns[None, :]
        there = counted[:, None] & inside[None, :]
        x = tl.load(place, mask=there, other=0.0).to(tl.float64)
        seen = there & (x == x)
        x = tl.where(seen, x, 0.0)
        odds = tl.exp(intercept[None, :] + slope[None, :] * x)
        w = tl.where(seen, 1.0 + odds, 0.0)
        count += tl.sum(seen.to(tl.float64), axis=0)
        total += tl.sum(w, axis=0)
        squares += tl.sum(w * w, axis=0)
        largest = tl.maximum(largest, tl.max(w, axis=0))
        first += tl.sum(w * x, axis=0)
        observed = tl.sum(seen.to(tl.int32), axis=1)
        row = tl.exp(tl.sum(tl.where(seen, tl.log(1.0 + odds), 0.0), axis=1))
        row = tl.where(counted & (observed == n_columns), row, 0.0)
        tl.store(weights + index, row, mask=index < n_rows)
        row_count += (row > 0.0).to(tl.float64)
        row_total += row
        row_squares += row * row
        row_largest = tl.maximum(row_largest, row)
    base = sums + program * (5 * n_columns + 4)
    tl.store(base + columns, count, mask=inside)
    tl.store(base + n_columns + columns, total, mask=inside)
    tl.store(base + 2 * n_columns + columns, squares, mask=inside)
    tl.store(base + 3 * n_columns + columns, largest, mask=inside)
    tl.store(base + 4 * n_columns + columns, first, mask=inside)
    base += 5 * n_columns
    tl.store(base, tl.sum(row_count, axis=0))
    tl.store(base + 1, tl.sum(row_total, axis=0))
    tl.store(base + 2, tl.sum(row_squares, axis=0))
    tl.store(base + 3, tl.max(row_largest, axis=0))
