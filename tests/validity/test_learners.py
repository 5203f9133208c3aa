"""Whatever learns the scores, the error on fresh class-0 rows keeps to its bound.

Laws are known, so that a classifier's true error is all but known too: it is counted on
100,000 fresh rows.
"""

import numpy as np
import pytest
from classifiers import certified
from data import corrupted
from promises import kept
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

import missratio as mr
from missratio.datasets import simulations

pytestmark = pytest.mark.validity

ALPHA, DELTA, REPEATS, N_ROWS, N_FRESH = 0.1, 0.1, 120, 400, 100_000

# Class 0 loses entries too, fewer of them.
PHI_0 = mr.LogisticMissingness(intercept=[-1.5, -1.5], coef=[0.5, -0.5])


def trees():
    return HistGradientBoostingClassifier(max_iter=20, random_state=0)


def tilted():
    return mr.ImputationEnsemble(mr.TiltedImputer(n_imputations=2), trees())


LEARNERS = {
    "naive Bayes": mr.NaiveBayesRatio,
    "joint": mr.KLIEPCV,
    "products": lambda: mr.KLIEPCV(mr.PolynomialBasis(2, interactions="all")),
    "tilted": tilted,
}


def violations(simulation, learner, missingness):
    """How many of the classifiers exceed alpha, and their mean power."""
    rng = np.random.default_rng(0)
    fresh_0 = simulation.denominator.sample(N_FRESH, rng)
    fresh_1 = simulation.numerator.sample(10_000, rng)
    broken, power = 0, 0.0
    for repeat in range(REPEATS):
        X, y = simulation.draw(N_ROWS, N_ROWS, rng)
        options = {"on_infeasible": "reject_all", "random_state": repeat}
        classifier = certified(learner(), missingness=missingness, **options)
        with threadpool_limits(1):
            classifier.fit(corrupted(X, y, missingness, rng), y)
            broken += classifier.predict(fresh_0).mean() > ALPHA
            power += classifier.predict(fresh_1).mean() / REPEATS
    return broken, power


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("lost", "least"), [({}, 0.5), ({0: PHI_0}, 0.3)])
@pytest.mark.parametrize("name", LEARNERS)
def test_entries_of_class_1_or_of_both_classes_missing(name, lost, least):
    simulation = simulations.naive_bayes(0.7)
    missingness = lost | simulation.missingness
    broken, power = violations(simulation, LEARNERS[name], missingness)
    assert kept(broken, REPEATS, DELTA)
    assert power > least


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_of_class_1_missing_and_weights_for_any_learner():
    simulation = simulations.diff_variance()
    broken, power = violations(simulation, trees, simulation.missingness)
    assert kept(broken, REPEATS, DELTA)
    assert power > 0.3
