"""Every rule keeps its promise, and auto is about as good as the best of them.

The simulation is that of the page "Validity of the threshold rules" in the docs.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

from missratio import KLIEP, NeymanPearsonClassifier, StepMissingness, corrupt
from missratio.threshold import CalibrationSample, Rule, make_rule

# Worker processes import it by this name as well.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import validity

pytestmark = pytest.mark.validity


@pytest.fixture(scope="module")
def outcomes():
    return validity.simulate_all(validity.all_cells())


def test_the_settings_are_as_many_as_promised():
    cells = validity.all_cells()
    assert len({cell.situation for cell in cells}) >= 8
    assert {cell.n_rows for cell in cells} == {50, 300, 1000, 5000, 20_000}
    assert {cell.ties for cell in cells} == {False, True}
    assert validity.REPEATS >= 2000


def test_no_rule_breaks_its_promise(outcomes):
    assert validity.broken_promises(outcomes) == []


def test_auto_is_close_to_the_best_rule_everywhere(outcomes):
    assert validity.behind(outcomes, allowed=0.02) == []


def test_no_rule_has_more_power_than_the_oracle_but_by_violations(outcomes):
    for outcome in outcomes:
        oracle = outcome.cell.oracle_power
        for rule, power in outcome.power.items():
            kept = outcome.error[rule] <= outcome.cell.alpha * (1 + 1e-9)
            assert (power[kept] <= oracle + 1e-9).all()


def test_there_is_power_where_the_papers_rule_has_none():
    example = validity.simulate_example()
    power, error = example.mean_power("auto")
    assert power - 3 * error > 0.37
    assert example.mean_power("paper") == (0.0, 0.0)
    assert example.cell.oracle_power == pytest.approx(0.586, abs=5e-4)
    assert validity.broken_promises([example]) == []


class WithoutWeights(Rule):
    """Takes observed rows for complete ones."""

    name = "without weights"

    def __init__(self, inner):
        self.inner = inner

    def select(self, sample, alpha, delta, rng):
        observed = CalibrationSample.build(sample.scores)
        return self.inner.select(observed, alpha, delta, rng)


@pytest.mark.parametrize("inner", ["binomial", "hoeffding-bentkus", "betting"])
@pytest.mark.parametrize("situation", ["step up", "logistic up", "per feature"])
def test_a_rule_that_leaves_the_weights_out_is_caught(inner, situation):
    broken = WithoutWeights(make_rule(inner, training=None, complete=True))
    cell = validity.Cell(situation, 1000, 0.1, 0.05, ties=False)
    outcome = validity.simulate(cell, rules=["thinning"], extra={"broken": broken})
    found = validity.broken_promises([outcome])
    assert len(found) == 1
    assert found[0].startswith("broken in")


@pytest.mark.parametrize("probability", [0.0, 0.6])
def test_the_fitted_classifier_keeps_the_promise_of_its_certificate(probability):
    alpha, delta, repeats, n = 0.1, 0.1, 1000, 400
    phi = StepMissingness([1.0, 0.0], 0.5, probability)
    missingness = {0: phi} if probability else None
    broken = 0
    for seed in range(repeats):
        rng = np.random.default_rng([8, seed])
        X0, X1 = rng.normal(size=(n, 2)), rng.normal(1.2, 1.0, (n, 2))
        X = np.concatenate([corrupt(X0, phi, rng), X1])
        model = NeymanPearsonClassifier(
            KLIEP(l2=0.01), alpha, delta, missingness=missingness, random_state=rng
        ).fit(X, np.repeat([0, 1], n))
        # Linear scores of N(0, I): what is above the threshold is known exactly.
        at_zero, *unit = model.score_samples(np.concatenate([[[0, 0]], np.eye(2)]))
        slope = np.linalg.norm(np.array(unit) - at_zero)
        broken += ndtr((at_zero - model.threshold_) / slope) > alpha
    assert binomtest(broken, repeats, delta, "greater").pvalue > 0.001
