"""The power that a report prints is that of the certified threshold on new rows."""

import numpy as np
import pytest
from data import corrupted, equicorrelated, stacked
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr

pytestmark = pytest.mark.validity
PHI = mr.LogisticMissingness([-1.5] * 3, [0.6] * 3)
TREES = HistGradientBoostingClassifier(max_iter=30, random_state=0)


def measured(seed, estimator, models):
    """The true power, and the printed one with its interval."""
    rng = np.random.default_rng(seed)
    Z, y = stacked(*(equicorrelated(rng, 800, 3) + shift for shift in (0.0, 1.2)))
    X = corrupted(Z, y, models, rng)
    options = {"on_infeasible": "reject_all", "random_state": seed}
    classifier = mr.NeymanPearsonClassifier(
        estimator, alpha=0.15, missingness=models or None, **options
    ).fit(X, y)
    power = mr.build_report(classifier, X, y).data["errors"][0]["found"]
    new = equicorrelated(rng, 20_000, 3) + 1.2
    truth = (classifier.predict(new) == 1).mean()
    return truth, power["estimate"], power["low"] <= truth <= power["high"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "models"), [(mr.KLIEP(), {0: PHI, 1: PHI}), (TREES, {})]
)
def test_the_interval_of_the_power_covers_the_truth(estimator, models):
    truth, printed, covered = np.transpose(
        [measured(seed, estimator, models) for seed in range(30)]
    )
    assert abs((printed - truth).mean()) < 0.025
    assert covered.sum() >= 24
