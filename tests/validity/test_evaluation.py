"""Comparisons of classifiers, alarms of the monitor, and powers in reports, hold."""

import numpy as np
import pytest
from data import corrupted, equicorrelated, stacked
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr
from missratio import np_roc
from missratio.evaluation import compare_np_roc

pytestmark = pytest.mark.validity


def told_apart(directions, n_controlled, n_other, alphas, repeats):
    """In what share of repeats either score is called better, at each level."""
    told = np.zeros(len(alphas))
    for repeat in range(repeats):
        rng = np.random.default_rng([29, repeat])
        rows = (
            rng.normal(size=(n_controlled, 2)),
            rng.normal([1.5, 0.0], 1.0, (n_other, 2)),
        )
        curves = [
            np_roc(*(each @ direction for each in rows), alphas=alphas, delta=0.05)
            for direction in directions
        ]
        found = compare_np_roc(*curves)
        told += found.a_better | found.b_better
    return told


@pytest.mark.parametrize(
    ("directions", "n_controlled", "n_other"),
    [
        (([1, 1], [1, -1]), 2000, 2000),
        (([1, 0.2], [1, -0.2]), 2000, 2000),
        (([1, 0.5], [1, -0.5]), 500, 4000),
        (([1, 1], [1, -1]), 100, 100),
    ],
)
def test_scores_of_equal_power_are_told_apart_in_five_of_a_hundred(
    directions, n_controlled, n_other
):
    repeats = 150
    told = told_apart(directions, n_controlled, n_other, [0.05, 0.1, 0.3], repeats)
    assert (binom.sf(told - 1, repeats, 0.05) > 1e-3).all()


def test_a_power_of_586_is_told_from_one_of_524():
    assert told_apart(([1, 0], [2, 1]), 2000, 2000, [0.1], 60)[0] >= 54


# The power that a report prints is that of the certified threshold on new rows.


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
