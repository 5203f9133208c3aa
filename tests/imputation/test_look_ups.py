"""Looked-up values are data: missing ones have their law, whatever φ is."""

import numpy as np
import pytest
from data import look_up
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import missratio as mr


def tail(z, others):
    return 0.1 + 0.8 * (z > np.quantile(z, 0.7))


def u_shaped(z, others):
    low, high = np.quantile(z, [0.2, 0.8])
    return 0.1 + 0.7 * ((z < low) | (z > high))


def by_another_column(z, others):
    return 1.0 / (1.0 + np.exp(-2.0 * others[:, -1] - z))


def draw(n, seed, mechanism=tail, d=3):
    """Correlated columns, the second lognormal; the first two lose values."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    Z = (common + rng.normal(size=(n, d))) / np.sqrt(2.0)
    Z[:, 1] = np.exp(Z[:, 1])
    lost = np.zeros((n, d), dtype=bool)
    for j in (0, 1):
        lost[:, j] = rng.random(n) < mechanism(Z[:, j], Z)
    return Z, lost


@pytest.mark.parametrize("mechanism", [tail, u_shaped, by_another_column])
def test_means_and_correlations_are_those_of_complete_data(mechanism):
    found, biased, truth = [], [], []
    for seed in range(12):
        Z, lost = draw(1500, seed, mechanism)
        X, inclusion = look_up(Z, lost, 100, seed)

        def moments(table, lost=lost):
            first, second = table[lost[:, 0], 0], np.log(table[lost[:, 1], 1])
            together = np.corrcoef(table[:, 0], table[:, 2])[0, 1]
            own = [(each.mean(), each.std()) for each in (first, second)]
            return [*own[0], *own[1], together]

        imputer = mr.TiltedImputer(n_rounds=5, random_state=seed)
        found.append(moments(imputer.fit_transform(X, inclusion=inclusion)))
        imputer = mr.TiltedImputer("ignore", n_rounds=5, random_state=seed)
        biased.append(moments(imputer.fit_transform(X)))
        truth.append(moments(Z))
    error = np.array(found) - truth
    spread = error.std(axis=0, ddof=1) / np.sqrt(len(error))
    # A hundred donors make spreads a few per cent too small.
    assert (np.abs(error.mean(axis=0)) < 3.5 * spread + 0.02).all()
    other = np.abs((np.array(biased) - truth).mean(axis=0))
    assert other.max() > 5 * np.abs(error.mean(axis=0)).max()


def test_fitted_and_later_rows_get_the_law_of_looked_up_values():
    Z, lost = draw(3000, 0)
    X, inclusion = look_up(Z[:1500], lost[:1500], 300, 0)
    imputer = mr.TiltedImputer(n_rounds=3, random_state=0)
    table = imputer.fit_transform(X, inclusion=inclusion)
    later = imputer.transform(np.where(lost[1500:], np.nan, Z[1500:]))
    plain = imputer.set_params(missingness="ignore").fit_transform(X)
    for completed, rows, fits in (
        (table, slice(1500), True),
        (later, slice(1500, None), True),
        (plain, slice(1500), False),
    ):
        at = lost[rows, 0]
        gap = completed[at, 0].mean() - Z[rows][at, 0].mean()
        assert abs(gap) < 0.15 if fits else gap < -0.2


def test_few_look_ups_of_a_spike_and_of_a_category():
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    amount = np.where(rng.random(2000) < 0.4, 0.0, np.exp(z))
    word = (z + rng.normal(size=2000) > 0).astype(float)
    word += word * (rng.random(2000) < 0.3)
    Z = np.column_stack([z, amount, word])
    lost = np.zeros(Z.shape, dtype=bool)
    lost[:, 1] = rng.random(2000) < np.where(amount == 0.0, 0.7, 0.2)
    lost[:, 2] = rng.random(2000) < np.array([0.1, 0.4, 0.8])[word.astype(int)]
    X, inclusion = look_up(Z, lost, 150, 1)
    imputer = mr.TiltedImputer(categorical_features=[2], random_state=0)
    table = imputer.fit_transform(X, inclusion=inclusion)
    plain = imputer.set_params(missingness="ignore").fit_transform(X)
    for column, value in ((1, 0.0), (2, 2.0)):
        at = lost[:, column]
        truth, found, biased = (
            np.mean(each[at, column] == value) for each in (Z, table, plain)
        )
        assert abs(found - truth) < 0.08
        assert abs(biased - truth) > 0.15


@pytest.mark.parametrize("routed", [False, True])
def test_a_certified_classifier_hands_look_ups_to_its_imputer(routed):
    (Z, lost), y = draw(600, 1), np.repeat([0, 1], 300)
    Z[y == 1, 0] += 1.0
    X, inclusion = look_up(Z, lost & (y == 1)[:, None], 80, 1)
    imputer = mr.TiltedImputer(n_imputations=2, random_state=0)
    with config_context(enable_metadata_routing=routed):
        if routed:
            imputer.set_fit_request(inclusion=True)
        pipeline = make_pipeline(imputer, LogisticRegression())
        ensemble = mr.ImputationEnsemble(imputer, LogisticRegression())
        for estimator in (pipeline, ensemble):
            fitted = mr.NeymanPearsonClassifier(estimator, alpha=0.2, random_state=0)
            fitted.fit(X, y, inclusion=inclusion)
            inner = fitted.estimator_
            known = inner[0] if estimator is pipeline else inner.imputer_
            assert list(known.convergence_) == [1]


def test_a_class_with_a_model_goes_by_it_beside_one_with_look_ups():
    Z, lost = draw(2000, 5)
    y = np.repeat([0, 1], 1000)
    X, inclusion = look_up(Z, lost & (y == 1)[:, None], 100, 0)
    X[lost & (y == 0)[:, None]] = np.nan
    inclusion[np.isnan(X)] = 0.0
    phi = mr.LogisticMissingness([0.0, 0.0, -np.inf], [1.0, 0.0, 0.0])
    imputer = mr.TiltedImputer({0: phi}, random_state=0)
    assert not np.isnan(imputer.fit_transform(X, y, inclusion=inclusion)).any()
    assert set(imputer.convergence_) == {0, 1}
    with pytest.raises(ValueError, match="Class 1 has a missingness model and incl"):
        mr.TiltedImputer({0: phi, 1: phi}).fit(X, y, inclusion=inclusion)
    with pytest.raises(ValueError, match="X has a missingness model and inclusion"):
        mr.TiltedImputer("ignore").fit(X, y, inclusion=inclusion)


def without_second(X, inclusion, lost):
    """As if nothing of the second column had been looked up."""
    second = lost & [False, True, False]
    return np.where(second, np.nan, X), np.where(second, 0.0, inclusion)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_second, "none of them was looked up"),
        (lambda X, inclusion, _: (X, inclusion[:-1]), "inclusion must have shape"),
        (lambda X, *_: (X, np.where(np.isnan(X), 0.0, 1.0)), "no missingness model"),
        (
            lambda X, inclusion, _: (X, inclusion.min(axis=1)),
            "doesn't say which values were looked up",
        ),
    ],
)
def test_look_ups_that_tell_nothing_are_refused(change, message):
    Z, lost = draw(200, 7)
    X, inclusion = change(*look_up(Z, lost, 20, 0), lost)
    with pytest.raises(ValueError, match=message):
        mr.TiltedImputer().fit(X, inclusion=inclusion)
