"""What a new row is given is a function of that row, whatever its batch and place."""

import numpy as np
import pytest
from classifiers import certified
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import missratio as mr

SLOPES = np.array([1.0, -1.5, 0.5, 1.0, -0.5])


def mixed_table(n, seed):
    """A normal, a lognormal, a discrete, a spiked column and one of two values."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 1)) + rng.normal(size=(n, 5))
    Z = scores.copy()
    Z[:, 1] = np.exp(scores[:, 1])
    Z[:, 2] = np.floor(2 * scores[:, 2])
    Z[:, 3] = np.maximum(scores[:, 3], 0.0)
    Z[:, 4] = scores[:, 4] > 0
    phi = mr.LogisticMissingness(-0.5, SLOPES)
    return mr.corrupt(Z.astype(np.float32).astype(float), phi, rng), phi


OPTIONS = {"linear": {}, "categories": {"categorical_features": [2, 4]}}


@pytest.fixture(scope="module", params=OPTIONS)
def imputer(request):
    X, phi = mixed_table(600, 0)
    options = OPTIONS[request.param]
    return mr.TiltedImputer(
        phi, n_imputations=2, n_rounds=3, random_state=0, **options
    ).fit(X)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_an_imputed_row_depends_on_that_row_alone(imputer, seed):
    X, _ = mixed_table(40, 1)
    rng = np.random.default_rng(seed)
    whole = imputer.impute(X)
    order = rng.integers(0, 40, 60)  # permuted, some twice and some left out
    for table, rows in zip(whole, imputer.impute(X[order]), strict=True):
        np.testing.assert_array_equal(rows, table[order])
    one = int(order[0])
    for table, row in zip(whole, imputer.impute(X[[one]]), strict=True):
        np.testing.assert_array_equal(row[0], table[one])


def test_neither_layout_nor_kind_of_the_table_matters(imputer):
    X, _ = mixed_table(40, 1)
    plain = imputer.transform(X)
    np.testing.assert_array_equal(imputer.transform(np.asfortranarray(X)), plain)
    np.testing.assert_array_equal(imputer.transform(X[::-1])[::-1], plain)
    np.testing.assert_array_equal(
        imputer.transform(X.astype(np.float32)), plain.astype(np.float32)
    )
    np.testing.assert_array_equal(imputer.transform(X.tolist()), plain)
    # Any NaN is missing, and −0 is 0.
    payload = X.copy()
    payload[np.isnan(X)] = np.uint64(0xFFF8_0000_0000_0123).view(np.float64)
    payload[X == 0.0] = -0.0
    np.testing.assert_array_equal(imputer.transform(payload), plain)


def test_a_value_that_hardly_goes_missing_is_drawn_by_the_row_too():
    # No proposal is accepted in a hundred tries: one of five hundred is chosen.
    rng = np.random.default_rng(0)
    z = rng.normal(size=500)
    X = np.column_stack([z, z + 0.1 * rng.normal(size=500)])
    X[(z > 1) & (rng.random(500) < 0.5), 1] = np.nan
    phi = mr.FunctionMissingness(
        lambda X: np.column_stack([0 * X[:, 0], np.where(X[:, 1] > 1, 0.5, 1e-9)]),
        rowwise=False,
    )
    imputer = mr.TiltedImputer(phi, random_state=0).fit(X)
    new = np.column_stack([np.linspace(-3, 0, 4), np.full(4, np.nan)])
    whole = imputer.transform(new)
    order = rng.permutation(4)
    np.testing.assert_array_equal(imputer.transform(new[order]), whole[order])
    for k in range(4):
        np.testing.assert_array_equal(imputer.transform(new[[k]])[0], whole[k])


def test_rows_that_are_much_alike_are_given_independent_draws():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(5000.0), rng.uniform(size=(5000, 2))])
    X[:500, 1:] = np.nan
    imputer = mr.TiltedImputer("ignore", n_imputations=2, n_rounds=1, random_state=0)
    rows = np.column_stack([np.arange(20_000.0) / 4, np.full((20_000, 2), np.nan)])
    first, second = imputer.fit(X).impute(rows)
    numbers = np.column_stack([first[:, 1:], second[:, 1:], np.roll(first[:, 1], 1)])
    counts = np.stack([np.histogram(each, 20, (0, 1))[0] for each in numbers.T])
    assert (np.abs(counts / 1000 - 1) < 0.3).all()
    gaps = np.corrcoef(numbers.T) - np.eye(5)
    assert np.abs(gaps).max() < 0.1


def as_observed_error(rng):
    """The error of a deployment as observed, in a setting drawn at random.

    Some rows are scored one at a time, and must have the score that they have among
    others: the error of all is then that of rows that come one by one.
    """
    d, n = int(rng.integers(2, 4)), int(rng.integers(300, 600))
    phi = {
        label: mr.LogisticMissingness(rng.uniform(-2, 0, d), rng.uniform(-2, 2, d))
        for label in (0, 1)
    }
    shift, root = rng.uniform(0, 1, d), rng.normal(size=(d, d)) / 2 + np.eye(d)

    def draw(label, count):
        return mr.corrupt(
            rng.normal(size=(count, d)) @ root + label * shift, phi[label], rng
        )

    seed = int(rng.integers(2**31))
    imputer = mr.TiltedImputer(phi, n_rounds=2, unlabelled=0, random_state=seed)
    classifier = certified(
        make_pipeline(imputer, LogisticRegression()),
        missingness=phi,
        deployment="as-observed",
        random_state=seed,
    ).fit(np.concatenate([draw(0, n), draw(1, n)]), np.repeat([0, 1], n))
    new = draw(0, 4000)
    scores = classifier.decision_function(new)
    for k in range(5):
        single = classifier.decision_function(new[[k]])
        np.testing.assert_allclose(single[0], scores[k], rtol=1e-9, atol=1e-9)
    return float(np.mean(classifier.predict(new) == 1))


@pytest.mark.filterwarnings("ignore::missratio.exceptions.WeightConcentrationWarning")
@pytest.mark.parametrize("repeats", [25, pytest.param(300, marks=pytest.mark.validity)])
def test_a_certificate_as_observed_holds_for_rows_one_at_a_time(repeats):
    rng = np.random.default_rng(0)
    errors = np.array([as_observed_error(rng) for _ in range(repeats)])
    # Errors are estimated: one in the very middle counts either way.
    assert (errors > 0.1).sum() <= binom.ppf(1 - 1e-4, repeats, 0.1), errors
