"""Arrays of other libraries on the host give the numbers of NumPy's arrays."""

import numpy as np
import pytest
from optional_packages import optional

import missratio as mr

strict = optional("array_api_strict")
PHI = {1: mr.LogisticMissingness([-2.0, -1.0, -np.inf], [0.4, 0.2, 0.0])}
ESTIMATORS = {
    "KLIEP": mr.KLIEP(),
    "missing values": mr.KLIEP(missingness=PHI),
    "divergence": mr.FDivergenceRatio("js"),
    "naive Bayes": mr.NaiveBayesRatio(missingness=PHI),
    "kernels": mr.KernelRatio(flat_within=0.0, random_state=0),
    "a learner's": mr.ClassifierRatio(),
    "a certificate": mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.3, missingness=PHI, controlled_class=1, random_state=0
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_array_api_strict(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    Z = rng.normal(0.4 * y[:, None], 1.0, (600, 3))
    X = Z.copy()
    if ESTIMATORS[name].get_params().get("missingness"):
        X[y == 1] = mr.corrupt(X[y == 1], PHI[1], 0)

    def scores(as_array):
        fitted = ESTIMATORS[name].fit(as_array(X), as_array(y))
        return fitted.decision_function(as_array(Z))

    np.testing.assert_array_equal(scores(strict.asarray), scores(np.asarray))
