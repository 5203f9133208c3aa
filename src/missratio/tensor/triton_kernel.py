"""The Triton kernel behind `fused`; importing this module imports Triton."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n_rows", "log_scale"])
def tilted_sums(
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
