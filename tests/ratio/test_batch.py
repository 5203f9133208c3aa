"""A batch of fits is what a loop of fits would give."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from missratio import (
    KLIEP,
    FDivergenceRatio,
    LogisticMissingness,
    NaiveBayesRatio,
    PolynomialBasis,
    StepMissingness,
    corrupt,
    density_ratio,
)
from missratio.ratio import fit_batch

ROWS = StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = LogisticMissingness([-0.5, 0.0], [1.0, -1.0])


def draw(n_problems=6, n1=80, n0=100, d=2, seed=0):
    rng = np.random.default_rng(seed)
    upper = rng.normal(0.3, 1, (n_problems, n1, d)) + 5.0
    return upper - 5.0, rng.normal(size=(n_problems, n0, d))


def lose(tables, model, seed):
    return np.array([corrupt(table, model, seed + i) for i, table in enumerate(tables)])


def assert_equals_a_loop(estimator, X1, X0):
    fits = fit_batch(estimator, X1, X0)
    assert fits.converged.all()
    assert fits.has_optimum.all()
    for i in range(len(X1)):
        one = density_ratio(X1[i], X0[i], estimator)
        np.testing.assert_allclose(fits.coef[i], one.coef_, atol=1e-7)
        assert fits.log_normalizer[i] == pytest.approx(one.log_normalizer_, abs=1e-7)


@pytest.mark.parametrize(
    "estimator",
    [
        KLIEP(),
        KLIEP(l2=0.1),
        KLIEP(l2=[0.0, 0.5]),
        KLIEP(normalize="horvitz-thompson"),
        KLIEP(basis=PolynomialBasis(degree=2, interactions="all"), l2=0.01),
        FDivergenceRatio("js"),
        FDivergenceRatio("kl"),
    ],
    ids=str,
)
def test_complete_data(estimator):
    assert_equals_a_loop(estimator, *draw())


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
@pytest.mark.parametrize("estimator", [KLIEP(), FDivergenceRatio("js")], ids=str)
@pytest.mark.parametrize("sides", [(1,), (0,), (0, 1)])
def test_whole_rows_missing_with_known_probability(estimator, normalize, sides):
    tables = dict(zip((1, 0), draw(), strict=True))
    for label in sides:
        tables[label] = lose(tables[label], ROWS, 100 * label)
    models = dict.fromkeys(sides, ROWS)
    estimator = type(estimator)(missingness=models, normalize=normalize)
    assert_equals_a_loop(estimator, tables[1], tables[0])


def test_whole_rows_missing_and_ignored():
    X1, X0 = draw()
    ignoring = KLIEP(missingness="ignore")
    assert_equals_a_loop(ignoring, lose(X1, ROWS, 0), lose(X0, ROWS, 50))


def test_entries_missing_in_the_denominator():
    X1, X0 = draw()
    assert_equals_a_loop(KLIEP(missingness={0: ENTRIES}), X1, lose(X0, ENTRIES, 0))


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
@pytest.mark.parametrize("kind", [KLIEP, partial(FDivergenceRatio, "kl")])
def test_entries_missing_where_means_are_all_that_counts(kind, normalize):
    X1, X0 = draw()
    estimator = kind(missingness={1: ENTRIES}, normalize=normalize)
    assert_equals_a_loop(estimator, lose(X1, ENTRIES, 0), X0)


def test_entries_missing_and_ignored():
    X1, X0 = draw()
    ignoring = KLIEP(missingness="ignore")
    assert_equals_a_loop(ignoring, lose(X1, ENTRIES, 0), lose(X0, ENTRIES, 50))


def test_an_interaction_of_entries_that_are_missing():
    X1, X0 = draw(n1=300, n0=300)
    basis = PolynomialBasis(degree=1, interactions=[(0, 1)])
    estimator = KLIEP(basis=basis, missingness={1: ENTRIES})
    assert_equals_a_loop(estimator, lose(X1, ENTRIES, 0), X0)


def test_entries_missing_where_complete_rows_count():
    X1, X0 = draw()
    estimator = FDivergenceRatio("js", missingness={1: ENTRIES})
    assert_equals_a_loop(estimator, lose(X1, ENTRIES, 0), X0)


def test_problems_do_not_disturb_each_other():
    X1, X0 = draw(20)
    fits = fit_batch(KLIEP(), X1, X0)
    some = fit_batch(KLIEP(), X1[5:7], X0[5:7])
    np.testing.assert_allclose(fits.coef[5:7], some.coef, atol=1e-9)


def test_the_tables_are_left_as_they_were():
    X1, X0 = draw()
    X1 = lose(X1, ROWS, 0)
    before = X1.copy(), X0.copy()
    X1.flags.writeable = X0.flags.writeable = False
    fit_batch(KLIEP(missingness={1: ROWS}), X1, X0)
    np.testing.assert_array_equal(X1, before[0])
    np.testing.assert_array_equal(X0, before[1])


def test_features_far_from_zero_are_no_trouble():
    X1, X0 = draw()
    near, far = fit_batch(KLIEP(), X1, X0), fit_batch(KLIEP(), X1 + 1e6, X0 + 1e6)
    assert far.converged.all()
    np.testing.assert_allclose(far.coef, near.coef, atol=1e-6)


def test_the_estimator_is_not_fitted():
    estimator = KLIEP()
    fit_batch(estimator, *draw())
    assert not hasattr(estimator, "coef_")


def test_equal_features_are_no_trouble():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X1, X0 = rng.integers(0, 3, (2, 4, 60, 2)).astype(float)
        X1, X0 = (np.concatenate([X, X[..., :1]], axis=2) for X in (X1, X0))
        assert fit_batch(FDivergenceRatio("kl"), X1, X0).converged.all()


# Bad input.


def test_shapes_must_agree():
    X1, X0 = draw()
    with pytest.raises(ValueError, match=r"shape \(n_problems, n_rows, n_columns\)"):
        fit_batch(KLIEP(), X1[0], X0[0])
    with pytest.raises(ValueError, match="same problems and columns"):
        fit_batch(KLIEP(), X1[:3], X0)
    with pytest.raises(ValueError, match="same problems and columns"):
        fit_batch(KLIEP(), X1[:, :, :1], X0)


@pytest.mark.parametrize("missingness", [None, "ignore", {1: ROWS}], ids=str)
def test_infinities_are_refused(missingness):
    X1, X0 = draw()
    X1[2, 3, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        fit_batch(KLIEP(missingness=missingness), X1, X0)


@pytest.mark.parametrize("missingness", [None, {0: ROWS}], ids=str)
def test_nan_without_a_model_is_refused(missingness):
    X1, X0 = draw()
    X1[2, 3] = np.nan
    with pytest.raises(ValueError, match='missingness="ignore"'):
        fit_batch(KLIEP(missingness=missingness), X1, X0)


def test_a_problem_without_an_observed_row_is_named():
    X1, X0 = draw()
    X1[4] = np.nan
    with pytest.raises(ValueError, match=r"Problem 4 has no \w+ row of class 1"):
        fit_batch(KLIEP(missingness={1: ROWS}), X1, X0)


def test_models_belong_to_the_classes_one_and_zero():
    with pytest.raises(ValueError, match=r"class 2, but the classes are \[0, 1\]"):
        fit_batch(KLIEP(missingness={2: ROWS}), *draw())


def test_ratios_that_are_not_log_linear_are_refused():
    with pytest.raises(ValueError, match="Use link='log'"):
        fit_batch(FDivergenceRatio("pearson", link="identity"), *draw())


@pytest.mark.parametrize(
    "estimator", [NaiveBayesRatio(), LogisticRegression(), "kliep"], ids=str
)
def test_the_estimator_must_be_a_joint_one(estimator):
    with pytest.raises(TypeError, match="KLIEP, FDivergenceRatio or ObjectiveRatio"):
        fit_batch(estimator, *draw())


@pytest.mark.parametrize(
    "parameters", [{"normalize": "haje"}, {"solver": "sgd"}], ids=str
)
def test_bad_parameters_are_refused(parameters):
    with pytest.raises(ValueError, match="must be one of"):
        fit_batch(KLIEP(**parameters), *draw())


@pytest.mark.parametrize(
    ("n_problems", "n1", "n0"), [(0, 10, 10), (3, 0, 10), (3, 10, 0)]
)
def test_an_empty_batch_is_refused(n_problems, n1, n0):
    with pytest.raises(ValueError, match=r"problem|row"):
        fit_batch(KLIEP(), np.zeros((n_problems, n1, 2)), np.zeros((n_problems, n0, 2)))


def test_fewer_rows_than_features_have_no_optimum():
    X1, X0 = draw(d=4)
    fits = fit_batch(KLIEP(), X1, X0[:, :3])
    assert not fits.has_optimum.any()
    assert not fits.converged.any()
