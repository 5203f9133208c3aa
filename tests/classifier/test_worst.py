"""The worst φ of a region: for the rule that uses it, and no worse than need be."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import missratio as mr
from missratio.classifier._worst import worst_model
from missratio.weights import complete_row_weights


class First(ClassifierMixin, BaseEstimator):
    """Scores a row by its first value."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.n_features_in_ = np.array([0, 1]), X.shape[1]
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def problem(seed=0, n=1000, m=100, d=1, slope=1.0, rowwise=False):
    rng = np.random.default_rng(seed)
    truth = mr.LogisticMissingness(-1.0, np.full(d, slope), rowwise)
    Z0 = rng.normal(size=(2 * n, d))
    X0 = mr.corrupt(Z0, truth, rng)
    revealed = np.full_like(X0, np.nan)
    for j in range(d):
        chosen = rng.permutation(np.flatnonzero(np.isnan(X0[:, j])))[:m]
        if rowwise:
            revealed[chosen] = Z0[chosen]
        else:
            revealed[chosen, j] = Z0[chosen, j]
    learned = mr.learn_missingness(X0, revealed, rowwise=rowwise)
    X = np.concatenate([X0, rng.normal(1.5, 1.0, (n, d))])
    return X, np.repeat([0, 1], [2 * n, n]), learned, truth


def total(model, rows, effect):
    return float(complete_row_weights(rows, model) @ effect)


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.4])
@pytest.mark.parametrize(("d", "rowwise"), [(1, True), (1, False), (2, False)])
def test_no_phi_of_the_region_is_worse(d, rowwise, ratio):
    X, y, learned, _ = problem(d=d, rowwise=rowwise)
    rows = X[y == 0]
    in_tail = (rows[:, 0] > 1.2).astype(float)
    worst = worst_model(learned, 0.05, rows, in_tail, ratio)
    effect = np.where(np.isnan(rows).any(axis=1), 0.0, in_tail - ratio)
    most = total(worst, rows, effect)
    assert most >= total(learned, rows, effect)
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = [region[rng.integers(len(region))] for region in learned.region(0.05)]
        # Points within: the region is convex, or nearly so.
        inside = rng.uniform()
        intercept = np.array([p[0] for p in points])
        coef = np.array([p[1] for p in points])
        intercept = inside * intercept + (1 - inside) * np.atleast_1d(learned.intercept)
        coef = inside * coef + (1 - inside) * np.atleast_1d(learned.coef)
        other = mr.LogisticMissingness(
            intercept[0] if rowwise else intercept, coef, rowwise
        )
        assert total(other, rows, effect) <= most + 0.02 * abs(most)


def test_a_region_of_many_dimensions_is_left_to_the_band():
    X, y, learned, _ = problem(d=2, rowwise=True)
    assert worst_model(learned, 0.05, X[y == 0], np.zeros(2000), 0.1) is None


def test_it_costs_less_power_than_a_band_and_keeps_the_promise():
    alpha, repeats, z = 0.1, 25, np.linspace(-6, 6, 6001)[:, None]
    laws = [np.exp(-((z[:, 0] - shift) ** 2) / 2) for shift in (0.0, 1.5)]
    powers, broken = {"auto": [], "thinning": []}, 0
    for seed in range(repeats):
        X, y, learned, _ = problem(seed)
        for rule, found in powers.items():
            model = mr.NeymanPearsonClassifier(
                First(), alpha, 0.05, missingness={0: learned}, rule=rule,
                on_infeasible="reject_all", random_state=seed,
            )  # fmt: skip
            above = model.fit(X, y).predict(z) == 1
            error, power = ((above * law).sum() / law.sum() for law in laws)
            found.append(power)
            broken += error > alpha
        assert model.certificate_.missingness_delta == 0.025
    assert np.mean(powers["auto"]) > np.mean(powers["thinning"]) + 0.01
    assert broken <= 3
