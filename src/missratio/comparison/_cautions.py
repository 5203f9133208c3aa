"""Where a level or a confidence that holds in large samples can't be trusted."""

from __future__ import annotations

import warnings

import numpy as np

from missratio._base.typing import FloatArray
from missratio.comparison._samples import ComparedSample
from missratio.exceptions import DataError, Message, SmallSampleWarning
from missratio.missingness import Missingness
from missratio.weights import complete_row_weights, effective_sample_size

# Of its sample's weight, that one row may have. With step φ at 0.9 and shares of 0.1 to
# 0.17 the test rejected 3% to 5% of the time at 1%.
LARGEST_SHARE = 0.05
# Of the rows, that the weights must add up to.
LEAST_MASS = 2.0 / 3.0
# Effective rows of X0 that a mean of r, or of r², needs. With fewer, 95% intervals
# missed 18% (KL of N(2, 1) from N(0, 1), 300 rows each) and 25% (Pearson's divergence
# of N(1, 1), 500 rows each).
LEAST_CARRYING = 100.0


def warn_of_heavy_rows(
    samples: tuple[ComparedSample, ComparedSample], stacklevel: int
) -> None:
    """Warn where single rows decide the weighted means that a bootstrap draws.

    Rows that would weigh most may be those that are missing: a sample's heaviest
    weight is looked for in the other sample, too, which has the same law under the
    hypothesis; and weights that add up to fewer rows than there are tell of a part of
    the law of which no row was observed.

    Warns
    -----
    SmallSampleWarning
    """
    complete = np.concatenate([s.table[s.weights > 0.0] for s in samples])
    for label, sample in zip((1, 0), samples, strict=True):
        model = sample.model
        total, heaviest = float(sample.weights.sum()), float(sample.weights.max())
        weighed = isinstance(model, Missingness) or sample.inclusion is not None
        lacking = weighed and total < LEAST_MASS * len(sample)
        if isinstance(model, Missingness):
            heaviest = float(complete_row_weights(complete, model).max())
            total = float(len(sample))
        if heaviest <= LARGEST_SHARE * total and not lacking:
            continue
        message = Message(
            "The bootstrap's level can't be trusted: one complete row of X{label} may "
            "weigh {share:.0%} of its sample, more than {most:.0%}, and its complete "
            "rows stand for {mass:.0f} of {n_rows} rows (Kish's effective sample size "
            "{kish:.1f}). The test may reject far too often.",
            label=label,
            remedies=(
                "bring more rows",
                "cap the missing probability by design",
                "take the p-value for a rough guide",
            ),
            facts={
                "share": heaviest / total,
                "most": LARGEST_SHARE,
                "mass": float(sample.weights.sum()),
                "n_rows": len(sample),
                "kish": effective_sample_size(sample.weights),
            },
        )
        warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)
        return


def warn_of_long_tail(
    scores: FloatArray, weights: FloatArray, divergence: str, stacklevel: int
) -> None:
    """Warn where few denominator rows carry the mean of r (KL) or of r² (Pearson).

    Warns
    -----
    SmallSampleWarning
    """
    seen = weights > 0.0
    power = 2.0 if divergence == "pearson" else 1.0
    carried = np.log(weights[seen]) + power * scores[seen]
    with np.errstate(under="ignore"):
        size = float(effective_sample_size(np.exp(carried - carried.max())))
    if size >= LEAST_CARRYING:
        return
    message = Message(
        "The interval can't be trusted: the mean of {what} rests on {size:.1f} "
        "effective rows of X0 (Kish), fewer than {least:.0f}. It may miss the truth "
        "far more often than its confidence says.",
        remedies=("take divergence='js', which is bounded", "bring more rows"),
        facts={
            "what": "the squared ratio" if power == 2.0 else "the ratio",
            "size": size,
            "least": LEAST_CARRYING,
        },
    )
    warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)


def refuse_disjoint_columns(
    samples: tuple[ComparedSample, ComparedSample], divergence: str
) -> None:
    """Refuse columns of which one sample has one value, outside of the other's."""
    X1, X0 = (each.table[each.weights > 0.0] for each in samples)
    for name, own, other in (("X1", X1, X0), ("X0", X0, X1)):
        constant = (own == own[0]).all(axis=0)
        met = (other == own[0]).any(axis=0)
        always = (other == own[0]).all(axis=0)
        # Of P1's mass a part lies where P0 has none.
        infinite = name == "X0" and divergence != "js"
        bad = np.flatnonzero(constant & ~(always if infinite else met))
        if len(bad):
            raise DataError(
                Message(
                    "Column(s) {columns} have one value in all complete rows of {name} "
                    "and {others} values in the other sample: {so}.",
                    columns=tuple(int(j) for j in bad),
                    remedies=("drop them", "bring more rows"),
                    facts={
                        "name": name,
                        "others": "other" if infinite else "only other",
                        "so": "KL and Pearson's divergence are infinite"
                        if infinite
                        else "the laws don't overlap (their Jensen-Shannon divergence "
                        "would be log 2, the others infinite)",
                    },
                )
            )


def refuse_separated(
    estimates: tuple[tuple[FloatArray, FloatArray], ...],
    divergence: str,
    stacklevel: int = 2,
) -> None:
    """Refuse samples that a ratio tells apart without error; warn of them for "js".

    Warns
    -----
    SmallSampleWarning
    """
    if not any(np.nanmin(own) > np.nanmax(other) for own, other in estimates):
        return
    message = Message(
        "The estimated ratio tells X1 from X0 without error: the rows don't show where "
        "the laws overlap, and {what}.",
        remedies=(
            "test the difference by ratio_test",
            "bring more rows",
            "use fewer columns",
        ),
        facts={
            "what": "the interval, close to log 2, is too short"
            if divergence == "js"
            else "KL and Pearson's divergence can't be told"
        },
    )
    if divergence != "js":
        raise DataError(message)
    warnings.warn(SmallSampleWarning(message), stacklevel=stacklevel + 1)
