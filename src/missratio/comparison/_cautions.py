"""Where a level or a confidence that holds in large samples can't be trusted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from missratio.comparison._samples import Sample
from missratio.exceptions import Message, SmallSampleWarning
from missratio.missingness import Missingness
from missratio.rows import class_model
from missratio.weights import complete_row_weights, effective_sample_size

# Of its sample's weight, that one row may have. With step φ at 0.9 and shares of 0.1 to
# 0.17 the test rejected 3% to 5% of the time at 1%.
LARGEST_SHARE = 0.05
# Of the rows, that the weights must add up to.
LEAST_MASS = 2.0 / 3.0


def warn_of_heavy_rows(
    samples: tuple[Sample, Sample], missingness: Any, stacklevel: int
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
        model = class_model(missingness, label)
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
