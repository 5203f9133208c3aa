"""R̂ of the chains."""

import numpy as np
import pytest

from missratio.imputation import ImputationTrace


def trace(mean):
    mean = np.asarray(mean, dtype=float)
    names = tuple(f"x{k}" for k in range(mean.shape[2]))
    return ImputationTrace(names, mean, np.ones_like(mean))


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (RNG.normal(size=(5, 400, 2)), pytest.approx(1, abs=0.02)),
        # Chains may have levels of their own.
        (
            RNG.normal(size=(5, 400, 1)) + 10 * np.arange(5)[:, None, None],
            pytest.approx(1, abs=0.02),
        ),
        (np.zeros((2, 8, 1)), 1.0),
        (np.repeat(np.arange(5.0), 2)[None, :8, None], np.inf),
        # Rounds are few.
        (np.zeros((1, 6, 1)), pytest.approx(np.nan, nan_ok=True)),
    ],
)
def test_r_hat_is_one_for_chains_about_one_level(mean, expected):
    assert trace(mean).r_hat == expected
