"""Linear growth: the time for each row of a large table and of a small one."""

from __future__ import annotations

from data import gaussian_classes, moment_mismatch
from measure import Result, Table, Target, Tell, check, duration, race

from missratio import KLIEP

LINEAR = Target("at most", 1.5)


def run(tell: Tell, *, quick: bool) -> Table:
    few, many, n_columns = (10_000, 100_000, 20) if quick else (100_000, 4_000_000, 20)
    small = gaussian_classes(few, n_columns, shift=0.2)
    large = gaussian_classes(many, n_columns, shift=0.2)
    timings, fitted = race(
        {
            "small": lambda: KLIEP().fit(small.X, small.y),
            "large": lambda: KLIEP().fit(large.X, large.y),
        },
        2 if quick else 7,
        tell,
        warm_up=True,
    )
    for name, data in (("small", small), ("large", large)):
        mismatch = moment_mismatch(data, fitted[name].coef_)
        check(mismatch <= 1e-8, f"growth, {name}: gradient norm {mismatch:.1e}")
    per_row_small = timings["small"] / (2 * few)
    per_row_large = timings["large"] / (2 * many)
    result = Result(
        "time per row",
        str(per_row_large),
        str(per_row_small),
        per_row_large.best / per_row_small.best,
        LINEAR,
        f"{fitted['large'].n_iter_} and {fitted['small'].n_iter_} steps; in all "
        f"{duration(timings['large'].best)} and {duration(timings['small'].best)}",
    )
    return Table(
        f"Growth: {many:,} rows a class against {few:,}, {n_columns} columns",
        "time per row of the larger / of the smaller",
        (result,),
        note="`KLIEP().fit` against itself: the first time is the larger table's.",
    )
