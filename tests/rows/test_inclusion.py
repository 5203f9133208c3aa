"""Inclusion by design: weights one over the probability of being in the table."""

import numpy as np
import pytest
from data import corrupted, two_normals
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.model_selection import GridSearchCV

import missratio as mr
from missratio.missingness.look_ups import row_probability

KINDS = [
    mr.KLIEP(),
    mr.FDivergenceRatio("js"),
    mr.NaiveBayesRatio(),
    mr.KLIEPCV(random_state=0),
]


def looked_up(n, seed, *, by_entry=True, share=0.5, d=2):
    """Class 1 loses values, and a share of them, drawn at random, is looked up."""
    rng = np.random.default_rng(seed)
    Z1, Z0 = rng.normal(0.5, 1, (n, d)), rng.normal(size=(n, d))
    phi = mr.LogisticMissingness(0.0, np.full(d, 2.0), rowwise=not by_entry)
    missing = np.isnan(mr.corrupt(Z1, phi, seed))
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
        biased = mr.KLIEP(missingness="ignore").fit(X, y)
        assert np.abs(biased.coef_ - 0.5).max() > 0.1


def test_inclusion_is_the_weight_of_the_row():
    X, y, inclusion = looked_up(500, 1, by_entry=False)
    seen = inclusion > 0
    weighted = mr.KLIEP().fit(X[seen], y[seen], sample_weight=1 / inclusion[seen])
    designed = mr.KLIEP().fit(X, y, inclusion=inclusion)
    np.testing.assert_allclose(designed.coef_, weighted.coef_, atol=1e-9)


@pytest.mark.parametrize("estimator", KINDS[:3], ids=str)
def test_inclusion_of_one_is_no_inclusion(estimator, two_normals):
    X, y = two_normals()
    plain = estimator.fit(X, y).coef_
    ones = estimator.fit(X, y, inclusion=np.ones(len(X))).coef_
    np.testing.assert_array_equal(plain, ones)


def test_scores_and_standard_errors_take_inclusion():
    X, y, inclusion = looked_up(500, 2)
    fitted = mr.KLIEP().fit(X, y, inclusion=inclusion)
    assert fitted.score(X, y, inclusion=inclusion) > 0.0
    errors = mr.ratio_uncertainty(fitted, X, y, inclusion=inclusion).standard_errors
    assert (np.abs(fitted.coef_ - 0.5) < 5 * errors[:-1]).all()


def test_inclusion_is_routed_as_sample_weight_is():
    X, y, inclusion = looked_up(600, 3)
    with config_context(enable_metadata_routing=True):
        estimator = mr.KLIEP().set_fit_request(inclusion=True)
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
        mr.KLIEP().fit(X, y, inclusion=change(X, inclusion))


def test_a_class_is_not_weighed_twice():
    X, y, inclusion = looked_up(100, 5)
    phi = mr.LogisticMissingness(0.0, 2.0)
    with pytest.raises(ValueError, match="can't be weighed twice"):
        mr.KLIEP(missingness={1: phi}).fit(X, y, inclusion=inclusion)


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
    full = mr.KLIEP().fit(np.concatenate([Z, other]), y)
    lossy = mr.KLIEP(direction="forward").fit(X, y, inclusion=both)
    np.testing.assert_allclose(lossy.coef_, full.coef_, atol=0.15)


# Which class a model of missingness is for.


PHI = mr.LogisticMissingness(-1.0, [0.5, 0.5])


def table(*lossy):
    X, codes = two_normals(200, shift=-0.5)
    y = np.array(["sick", "well"])[codes]
    return corrupted(X, y, dict.fromkeys(lossy, PHI)), y


@pytest.mark.parametrize("label", ["sick", "well"])
@pytest.mark.parametrize("estimator", [mr.KLIEP(), mr.NaiveBayesRatio()], ids=repr)
def test_a_model_by_itself_is_that_of_the_class_with_blanks(estimator, label):
    X, y = table(label)
    named = estimator.set_params(missingness={label: PHI}).fit(X, y)
    expected = named.coef_.copy(), named.importance_weights(X), named.score(X, y)
    bare = estimator.set_params(missingness=PHI).fit(X, y)
    assert bare.missingness_ == {label: PHI}
    found = bare.coef_, bare.importance_weights(X), bare.score(X, y)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    # What an earlier fit found isn't taken for this one.
    other = "well" if label == "sick" else "sick"
    assert bare.fit(*table(other)).missingness_ == {other: PHI}


@pytest.mark.parametrize(
    ("lossy", "message"),
    [((), "no class has any"), (("sick", "well"), "classes 'sick', 'well' have some")],
)
def test_a_model_that_could_be_any_class_s_is_refused(lossy, message):
    with pytest.raises(ValueError, match=f"{message}. Say which class it is for"):
        mr.KLIEP(missingness=PHI).fit(*table(*lossy))


# Sums are in double precision, whatever the table's.


def test_weights_near_certainty_of_missingness_keep_their_digits():
    phi = mr.LogisticMissingness(0.0, 1.0)
    weights = phi.weights(np.array([[36.0], [-40.0], [np.nan]]))
    np.testing.assert_allclose(weights[:, 0], [1.0 + np.exp(36.0), 1.0, 0.0])


ESTIMATORS = [mr.KLIEP(), mr.FDivergenceRatio("js"), mr.NaiveBayesRatio()]


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@settings(max_examples=6, deadline=None)
@given(
    offset=st.sampled_from([0.0, 30.0, 300.0, 3000.0]),
    exponent=st.integers(-8, 8),
    seed=st.integers(0, 99),
)
def test_single_precision_gives_the_coefficients_of_double(
    estimator, missing, held, offset, exponent, seed
):
    rng = np.random.default_rng(seed)
    scale = 10.0**exponent
    X1 = (rng.normal(offset + 0.3, 1, (25_000, 3)) * scale).astype(np.float32)
    X0 = (rng.normal(offset, 1, (30_000, 3)) * scale).astype(np.float32)
    phi = None
    if missing:
        phi = {1: mr.LogisticMissingness(-offset, 1.0 / scale)}
        X1 = mr.corrupt(X1.astype(np.float64), phi[1], seed).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        if not held:
            patch.setattr("missratio.rows.source.HELD_ELEMENTS", 0)
        single = mr.density_ratio(X1, X0, estimator, missingness=phi)
    double = mr.density_ratio(
        X1.astype(np.float64), X0.astype(np.float64), estimator, missingness=phi
    )
    assert single.converged_
    np.testing.assert_allclose(single.coef_ * scale, double.coef_ * scale, atol=2e-5)
