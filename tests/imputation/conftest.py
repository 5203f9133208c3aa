"""Tables whose missing values are known."""

import numpy as np
import pytest
from scipy.special import expit
from threadpoolctl import threadpool_limits

from missratio import FunctionMissingness, corrupt


@pytest.fixture(autouse=True)
def one_thread():
    """Boosted trees of small tables are slow on threads that others use too."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def skewed():
    """Correlated columns, a normal, a lognormal and a discrete one; half is lost.

    The whole table, what is left of it, and φ.
    Large values of the first and the last are lost, and small ones of the second.
    """

    def draw(n=6000, seed=0, slope=1.5):
        rng = np.random.default_rng(seed)
        # By hand: with equal eigenvalues multivariate_normal's rows depend on LAPACK.
        common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, 3))
        scores = np.sqrt(0.6) * common + np.sqrt(0.4) * own
        Z = np.column_stack(
            [scores[:, 0], np.exp(scores[:, 1]), np.floor(2 * scores[:, 2])]
        )

        def probability(X):
            with np.errstate(divide="ignore", invalid="ignore"):
                column = [X[:, 0], -np.log(X[:, 1]), X[:, 2] / 2]
            return np.column_stack([expit(slope * each) for each in column])

        phi = FunctionMissingness(probability, rowwise=False)
        return Z, corrupt(Z, phi, rng), phi

    return draw
