"""Inclusion by design: weights one over the probability of being in the table."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV

from missratio import (
    KLIEP,
    KLIEPCV,
    FDivergenceRatio,
    LogisticMissingness,
    NaiveBayesRatio,
    corrupt,
    ratio_uncertainty,
)
from missratio.missingness.look_ups import row_probability

KINDS = [KLIEP(), FDivergenceRatio("js"), NaiveBayesRatio(), KLIEPCV(random_state=0)]


def looked_up(n, seed, *, by_entry=True, share=0.5, d=2):
    """Class 1 loses values, and a share of them, drawn at random, is looked up."""
    rng = np.random.default_rng(seed)
    Z1, Z0 = rng.normal(0.5, 1, (n, d)), rng.normal(size=(n, d))
    phi = LogisticMissingness(0.0, np.full(d, 2.0), rowwise=not by_entry)
    missing = np.isnan(corrupt(Z1, phi, seed))
    found = rng.random((n, d) if by_entry else (n, 1)) < share
    X1 = np.where(missing & ~found, np.nan, Z1)
    inclusion = np.where(missing, np.where(found, share, 0.0), 1.0)
    X = np.concatenate([X1, Z0])
    inclusion = np.concatenate([inclusion, np.ones((n, d))])
    return X, np.repeat([1, 0], n), inclusion if by_entry else inclusion[:, 0]


@pytest.mark.parametrize("by_entry", [True, False])
@pytest.mark.parametrize("estimator", KINDS, ids=str)
def test_inclusion_finds_the_truth_without_a_model(estimator, by_entry):
    X, y, inclusion = looked_up(40_000, 0, by_entry=by_entry)
    fitted = estimator.fit(X, y, inclusion=inclusion)
    np.testing.assert_allclose(fitted.coef_, 0.5, atol=0.06)
    if not by_entry:
        biased = KLIEP(missingness="ignore").fit(X, y)
        assert np.abs(biased.coef_ - 0.5).max() > 0.1


def test_inclusion_is_the_weight_of_the_row():
    X, y, inclusion = looked_up(500, 1, by_entry=False)
    seen = inclusion > 0
    weighted = KLIEP().fit(X[seen], y[seen], sample_weight=1 / inclusion[seen])
    designed = KLIEP().fit(X, y, inclusion=inclusion)
    np.testing.assert_allclose(designed.coef_, weighted.coef_, atol=1e-9)


@pytest.mark.parametrize("estimator", KINDS[:3], ids=str)
def test_inclusion_of_one_is_no_inclusion(estimator, two_normals):
    X, y = two_normals()
    plain = estimator.fit(X, y).coef_
    ones = estimator.fit(X, y, inclusion=np.ones(len(X))).coef_
    np.testing.assert_array_equal(plain, ones)


def test_scores_and_standard_errors_take_inclusion():
    X, y, inclusion = looked_up(500, 2)
    fitted = KLIEP().fit(X, y, inclusion=inclusion)
    assert fitted.score(X, y, inclusion=inclusion) > 0.0
    errors = ratio_uncertainty(fitted, X, y, inclusion=inclusion).standard_errors
    assert (np.abs(fitted.coef_ - 0.5) < 5 * errors[:-1]).all()


def test_inclusion_is_routed_as_sample_weight_is():
    X, y, inclusion = looked_up(600, 3)
    with config_context(enable_metadata_routing=True):
        estimator = KLIEP().set_fit_request(inclusion=True)
        estimator.set_score_request(inclusion=True)
        search = GridSearchCV(estimator, {"l2": [0.0, 10.0]}, cv=3)
        search.fit(X, y, inclusion=inclusion)
    assert search.best_params_ == {"l2": 0.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, q: q[:-1], "inclusion must have shape"),
        (lambda X, q: 2 * q, r"probabilities in \[0, 1\]"),
        (lambda X, q: np.ones(q.shape), "is 1, and the entry has NaN"),
        (lambda X, q: np.where(q == 1, 0.0, q), "is 0, and the entry has no NaN"),
        (lambda X, q: np.zeros(len(q)), "is 0, and the row has no NaN"),
    ],
)
def test_inclusion_is_zero_exactly_where_values_are_missing(change, message):
    X, y, inclusion = looked_up(100, 4)
    with pytest.raises(ValueError, match=message):
        KLIEP().fit(X, y, inclusion=change(X, inclusion))


def test_a_class_is_not_weighed_twice():
    X, y, inclusion = looked_up(100, 5)
    phi = LogisticMissingness(0.0, 2.0)
    with pytest.raises(ValueError, match="can't be weighed twice"):
        KLIEP(missingness={1: phi}).fit(X, y, inclusion=inclusion)


def test_indicators_of_a_category_that_is_looked_up_count_once():
    """A number and a category go missing by themselves, and are drawn by themselves."""
    rng = np.random.default_rng(6)
    n = 20_000
    level = rng.integers(3, size=n)
    Z = np.column_stack([rng.normal(size=n) + level, np.eye(3)[level][:, 1:]])
    gone = np.column_stack([rng.random(n) < 0.4, rng.random(n) < 0.2 + 0.2 * level])
    found = rng.random((n, 2)) < [0.3, 0.5]
    share = np.where(gone, np.where(found, [0.3, 0.5], 0.0), 1.0)
    inclusion = share[:, [0, 1, 1]]
    np.testing.assert_allclose(row_probability(inclusion), share.prod(axis=1))
    other = Z[rng.permutation(n)] + rng.normal(0.5, 0.1, n)[:, None] * [1, 0, 0]
    X = np.concatenate([np.where(inclusion > 0, Z, np.nan), other])
    both, y = np.concatenate([inclusion, np.ones((n, 3))]), np.repeat([0, 1], n)
    full = KLIEP().fit(np.concatenate([Z, other]), y)
    lossy = KLIEP(direction="forward").fit(X, y, inclusion=both)
    np.testing.assert_allclose(lossy.coef_, full.coef_, atol=0.15)
