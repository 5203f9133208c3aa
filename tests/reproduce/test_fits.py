"""What is fitted side by side, or merged, is what the estimators fit by themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import missratio as mr
from missratio.reproduce._fits import (
    INFINITE,
    WeightedRows,
    certified_threshold,
    learned_missingness,
    naive_bayes_coef,
    stacked,
    weighted_naive_bayes,
)

CELLS = st.sampled_from([np.nan, -1.5, 0.0, 0.25, 3.0, 1e6])


@given(arrays(np.float64, (12, 3), elements=CELLS), st.integers(1, 2))
def test_merged_rows_have_the_columns_of_all_rows(X, n_samples):
    merged = WeightedRows.side_by_side([X] * n_samples)
    assert merged.weights.sum() == 12
    repeated = np.repeat(merged.rows, merged.weights.astype(int), axis=0)
    np.testing.assert_array_equal(repeated, np.sort(np.hstack([X] * n_samples), axis=0))
    # No two rows that follow one another are the same.
    same = [
        np.array_equal(*pair, equal_nan=True)
        for pair in zip(merged.rows, merged.rows[1:], strict=False)
    ]
    assert not any(same)


@pytest.mark.parametrize("way", ["ignore", "weighted"])
def test_many_runs_are_fitted_as_one_by_one(make_run, way):
    runs = [make_run(number=number) for number in range(3)]
    phi = [run.missingness for run in runs]
    together = mr.LogisticMissingness(
        np.concatenate([p.intercept for p in phi]),
        np.concatenate([p.coef for p in phi]),
    )

    def ratio(model):
        if way == "ignore":
            return mr.NaiveBayesRatio(missingness="ignore")
        return weighted_naive_bayes(model)

    coef = naive_bayes_coef(
        ratio(together),
        WeightedRows.side_by_side([run.numerator for run in runs]),
        WeightedRows.side_by_side([run.denominator for run in runs]),
    )
    for run, own in zip(runs, coef.reshape(3, -1), strict=True):
        X, y = stacked(run.numerator, run.denominator)
        alone = ratio(run.missingness).fit(X, y)
        np.testing.assert_allclose(own, alone.coef_, rtol=1e-7)


def test_columns_without_a_finite_optimum_outweigh_all_others():
    denominator = np.tile(np.linspace(-1.0, 1.0, 50)[:, None], (1, 3))
    numerator = denominator * 0.1 + np.array([1.5, 0.2, -2.0])
    rows = [WeightedRows.side_by_side([part]) for part in (numerator, denominator)]
    coef = naive_bayes_coef(mr.NaiveBayesRatio(), *rows)
    assert coef[0] == INFINITE
    assert coef[2] == -INFINITE
    assert 0 < coef[1] < 2


@pytest.mark.parametrize(
    ("variant", "method"), [("published", "ml"), ("corrected", "firth")]
)
def test_phi_is_that_of_learn_missingness(make_run, variant, method):
    run = make_run(variant)
    expected = mr.learn_missingness(
        run.numerator, run.revealed, method=method, from_table=False
    )
    phi = learned_missingness(
        run.numerator, run.revealed, corrected=variant == "corrected"
    )
    np.testing.assert_array_equal(phi.intercept, expected.intercept)
    np.testing.assert_array_equal(phi.coef, expected.coef)


@pytest.mark.parametrize("corrected", [False, True])
def test_other_columns_teach_nothing(make_run, corrected):
    """The paper learns each φ_j from its own column alone, as naive Bayes does r_j."""
    run = make_run("corrected")
    together = learned_missingness(run.numerator, run.revealed, corrected=corrected)
    for j in range(3):
        own = run.numerator[:, [j]], run.revealed[:, [j]]
        alone = learned_missingness(*own, corrected=corrected)
        np.testing.assert_allclose(together.intercept[j], alone.intercept, rtol=1e-9)
        np.testing.assert_allclose(together.coef[j], alone.coef, rtol=1e-9)


def separated():
    """40 values of three columns, of which the third's are not separated."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (40, 3))
    revealed = np.full_like(X, np.nan)
    revealed[:5] = rng.uniform([[2.0, -3.0, 0.0]], [[3.0, -2.0, 1.0]], (5, 3))
    X[:10] = np.nan
    return X, revealed


def test_published_takes_a_slope_of_100_through_the_midpoint_where_separated():
    X, revealed = separated()
    phi = learned_missingness(X, revealed, corrected=False)
    np.testing.assert_array_equal(phi.coef[:2], [100.0, -100.0])
    midpoints = [
        (np.nanmax(X[:, 0]) + np.nanmin(revealed[:, 0])) / 2,
        (np.nanmin(X[:, 1]) + np.nanmax(revealed[:, 1])) / 2,
    ]
    # Five of the ten that are missing were looked up.
    expected = -phi.coef[:2] * midpoints + np.log(2.0)
    np.testing.assert_allclose(phi.intercept[:2], expected)
    others = mr.learn_missingness(X[:, 2:], revealed[:, 2:], method="ml")
    np.testing.assert_array_equal(phi.coef[2:], others.coef)
    alone = learned_missingness(X[:, :2], revealed[:, :2], corrected=False)
    np.testing.assert_array_equal(alone.coef, phi.coef[:2])


def test_corrected_stays_finite_where_separated():
    phi = learned_missingness(*separated(), corrected=True)
    assert (np.abs(phi.coef) < 50).all()
    assert phi.coef[0] > 0 > phi.coef[1]


def test_where_nothing_is_lost_phi_is_zero(make_run):
    run = make_run(share=0.0)
    for corrected in (False, True):
        phi = learned_missingness(run.numerator, run.revealed, corrected=corrected)
        assert (phi.missing_probability(run.complete) == 0.0).all()


def test_thresholds_are_the_classifiers(make_run):
    run = make_run("corrected")
    X, y = stacked(run.complete, run.denominator)
    ratio = mr.NaiveBayesRatio().fit(X, y)
    classifier = mr.NeymanPearsonClassifier(ratio, alpha=0.2, delta=0.05)
    expected = classifier.calibrate(run.calibration).threshold_
    scores = ratio.decision_function(run.calibration)
    # The classifier moves its threshold up by what rounding may do.
    assert 0 <= expected - certified_threshold(scores, 0.2, 0.05) < 1e-5
    # Too few rows certify nothing, and nothing is classified as class 1.
    assert np.isinf(certified_threshold(scores[:10], 0.1, 0.1))
