"""The problem that a solver sees: known optima, and no optimum."""

from functools import partial

import numpy as np
import pytest
from data import equicorrelated
from hypothesis import given, settings
from hypothesis import strategies as st
from objectives import Anchored, Hellinger
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import missratio as mr
from missratio.exceptions import NoFiniteOptimumWarning
from missratio.ratio import fit_batch
from missratio.ratio import solve as solving

ESTIMATORS = {
    "KLIEP": mr.KLIEP(),
    "KL": mr.FDivergenceRatio("kl"),
    "JS": mr.FDivergenceRatio("js"),
    "Pearson": mr.FDivergenceRatio("pearson"),
    "Hellinger": mr.FDivergenceRatio(Hellinger()),
}


def made(name, **parameters):
    return clone(ESTIMATORS[name]).set_params(**parameters)


# Three kinds of rows, two indicators: the model is saturated, and the optimum of every
# objective is the ratio of the proportions.

COUNTS = {1: np.array([50, 30, 20]), 0: np.array([20, 40, 60])}
KINDS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
PROPORTIONS = COUNTS[1] / 100 / (COUNTS[0] / 120)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_solver_finds_every_objectives_known_optimum(name, solver):
    estimator = made(name, solver=solver)
    samples = [KINDS[np.repeat(np.arange(3), COUNTS[label])] for label in (1, 0)]
    ratio = mr.density_ratio(*samples, estimator)
    assert ratio.converged_
    tolerance = 1e-6 if solver == "newton" else 1e-5
    np.testing.assert_allclose(ratio.predict_ratio(KINDS), PROPORTIONS, rtol=tolerance)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sample_weights_stand_for_counts_at_every_objectives_optimum(name):
    X, y = np.concatenate([KINDS, KINDS]), np.repeat([1, 0], 3)
    weight = np.concatenate([COUNTS[1], COUNTS[0]])
    ratio = made(name).fit(X, y, weight)
    np.testing.assert_allclose(ratio.predict_ratio(KINDS), PROPORTIONS, rtol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_an_objective_of_ones_own_that_is_not_linear_has_its_known_optimum(
    solver, two_normals
):
    X, y = two_normals()
    own = mr.ObjectiveRatio(Anchored(), solver=solver).fit(X, y)
    kliep = mr.KLIEP().fit(X, y)
    np.testing.assert_allclose(own.coef_, kliep.coef_, atol=1e-6)
    assert own.intercept_ == pytest.approx(kliep.intercept_, abs=1e-6)


def gammas(rng, n, d):
    return rng.normal(0.2, 1, (n, d)), rng.gamma(4.0, 0.5, (n, d)) - 2.0


def normals(rng, n, d, unit=1.0):
    X1, X0 = rng.normal(0.05, 1, (n, d)), rng.normal(0, 1, (n, d))
    X1[:, 0] *= unit
    X0[:, 0] *= unit
    return X1, X0


@pytest.mark.parametrize(
    ("estimator", "make", "n", "d", "unit"),
    [
        *((ESTIMATORS[name], gammas, 60_000, 5, 1.0) for name in ("KLIEP", "KL", "JS")),
        (mr.KLIEP(), normals, 5000, 60, 1.0),
        (mr.KLIEP(l2=1e-3), normals, 5000, 60, 1.0),
        (mr.KLIEP(), partial(normals, unit=1e25), 5000, 60, 1e25),
        (mr.KLIEP(l2=1e-3), partial(normals, unit=1e25), 5000, 60, 1e25),
        (mr.KLIEP(), normals, 60_000, 110, 1.0),
    ],
)
def test_kept_hessians_and_a_pilot_change_nothing(
    estimator, make, n, d, unit, monkeypatch
):
    X1, X0 = make(np.random.default_rng(0), n, d)
    quick = mr.density_ratio(X1, X0, estimator)
    monkeypatch.setattr(solving, "PILOT_ROWS", 10**9)
    plain = mr.density_ratio(X1, X0, estimator)
    assert quick.converged_
    assert plain.converged_
    scale = np.array([unit, *np.ones(d - 1)])
    np.testing.assert_allclose(quick.coef_ * scale, plain.coef_ * scale, atol=1e-7)
    assert quick.intercept_ == pytest.approx(plain.intercept_, abs=1e-7)


LARGE = {
    "independent": lambda rng, n, d: rng.normal(size=(n, d)),
    "sorted": lambda rng, n, d: (
        np.sort(rng.normal(size=(n, 1)), axis=0) + rng.normal(size=(n, d))
    ),
    "correlated": lambda rng, n, d: equicorrelated(rng, n, d, 0.999),
    "heavy tails": lambda rng, n, d: rng.standard_t(6, size=(n, d)),
    "a few rows outweigh all others": lambda rng, n, d: rng.standard_t(3, size=(n, d)),
}


def tilted(X0, rng):
    """Rows of class 0 drawn by their odds, which are log-linear in the middle."""
    coef = rng.normal(size=X0.shape[1])
    coef *= 0.5 / (X0[:1000] @ coef).std()
    odds = np.exp(np.clip(X0 @ coef, -3.0, 3.0))
    return X0[rng.choice(len(X0), len(X0), p=odds / odds.sum())]


@pytest.mark.parametrize("kind", LARGE)
def test_in_a_large_sample_means_match(kind):
    rng = np.random.default_rng(0)
    X0 = LARGE[kind](rng, 200_000, 8)
    X1 = tilted(X0, rng)
    ratio = mr.density_ratio(X1, X0)
    assert ratio.converged_
    tilt = ratio.predict_ratio(X0)
    mismatch = (tilt @ X0) / tilt.sum() - X1.mean(axis=0)
    assert np.linalg.norm(mismatch) < 1e-7


def test_what_a_sketch_does_not_see_is_found_all_the_same():
    # An indicator of six rows in 200,000: pilot and sketch hardly see it.
    rng, n = np.random.default_rng(0), 200_000
    X0, X1 = rng.normal(size=(n, 3)), rng.normal(0.3, 1, (n, 3))
    X0[:, 2] = X1[:, 2] = 0.0
    X0[rng.choice(n, 6), 2] = 1.0
    X1[rng.choice(n, 9), 2] = 1.0
    ratio = mr.density_ratio(X1, X0)
    assert ratio.converged_
    expected = np.log(X1[:, 2].mean() / X0[:, 2].mean())
    assert ratio.coef_[2] == pytest.approx(expected, abs=0.7)


def test_a_pilot_that_misleads_changes_nothing():
    # Sorted in periods of eight, so that the pilot sees the lowest rows only.
    rng = np.random.default_rng(0)
    X0 = np.sort(rng.normal(size=(40_000, 3)), axis=0)
    X0 = X0.reshape(8, 5000, 3).swapaxes(0, 1).reshape(-1, 3)
    X1 = rng.normal(0.3, 1, (40_000, 3))
    sorted_fit = mr.density_ratio(X1, X0)
    shuffled = mr.density_ratio(X1, rng.permutation(X0))
    assert sorted_fit.converged_
    np.testing.assert_allclose(sorted_fit.coef_, shuffled.coef_, atol=1e-7)


# No finite optimum.


def indicator_that_never_occurs(n=200, seed=0):
    """Class 1 lies on the border of class 0: its second column is 0 throughout."""
    rng = np.random.default_rng(seed)
    X0 = np.c_[rng.normal(size=n), rng.random(n) < 0.3].astype(float)
    return np.c_[rng.normal(0.3, 1, n), np.zeros(n)], X0


def separated(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(2, 3, (n, 2)), rng.uniform(0, 1, (n, 2))


def half_separated():
    """By their second column alone."""
    X1, X0 = separated()
    return X1 - [2.0, 0.0], X0


DIVERGING = ["KLIEP", "KL", "JS"]
BORDER = indicator_that_never_occurs


@pytest.mark.parametrize(
    ("make", "names", "options", "warning"),
    [
        (separated, DIVERGING, {}, NoFiniteOptimumWarning),
        (separated, DIVERGING, {"solver": "lbfgs"}, NoFiniteOptimumWarning),
        *((partial(BORDER, n), DIVERGING, {}, NoFiniteOptimumWarning)
          for n in (100, 3000, 40_000)),
        (BORDER, DIVERGING, {"solver": "lbfgs"}, NoFiniteOptimumWarning),
        # A penalty on other features is none.
        (half_separated, ["KLIEP", "JS"], {"l2": [0.1, 0.0]}, NoFiniteOptimumWarning),
        # Under others the border is never passed over in silence.
        (partial(BORDER, 100), ["Hellinger"], {}, ConvergenceWarning),
        (partial(BORDER, 3000), ["Hellinger"], {}, ConvergenceWarning),
        (separated, ["Hellinger", "Pearson"], {}, ConvergenceWarning),
    ],
)  # fmt: skip
def test_where_no_optimum_is_finite_the_warning_says_so(make, names, options, warning):
    for name in names:
        with pytest.warns(warning, match=r"ridge penalty"):
            ratio = mr.density_ratio(
                *make(), made(name, **{"solver": "newton"} | options)
            )
        assert not ratio.converged_


def test_a_mean_outside_the_hull_is_enough_for_kliep_and_not_for_js():
    # Class 1 surrounds class 0 on three sides: not separated, yet its mean is outside.
    rng = np.random.default_rng(0)
    X0 = rng.uniform(-1, 1, (300, 2))
    X1 = np.concatenate([rng.uniform(-1, 1, (50, 2)), rng.uniform(2, 3, (200, 2))])
    with pytest.warns(NoFiniteOptimumWarning):
        mr.density_ratio(X1, X0, mr.KLIEP())
    assert mr.density_ratio(X1, X0, mr.FDivergenceRatio("js")).converged_


def test_pearson_runs_away_from_rows_far_out_and_is_told_so_at_once():
    rng = np.random.default_rng(0)
    X0, X1 = rng.standard_t(3, (2000, 60)), rng.standard_t(3, (2000, 60)) + 0.3
    for l2 in (0.0, 1e-3):
        with pytest.warns(NoFiniteOptimumWarning, match="Pearson's"):
            ratio = mr.density_ratio(X1, X0, mr.FDivergenceRatio("pearson", l2=l2))
        assert ratio.n_iter_ < 60


@pytest.mark.parametrize("make", [separated, BORDER])
@pytest.mark.parametrize("name", [*DIVERGING, "Hellinger"])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_with_a_penalty_every_optimum_is_finite(make, name, solver):
    estimator = made(name, solver=solver)
    # On the steep stretch of separated classes L-BFGS doesn't get below 1e-8.
    tol = 1e-8 if solver == "newton" else 1e-6
    ratio = mr.density_ratio(*make(), estimator.set_params(l2=0.01, tol=tol))
    assert ratio.converged_


@pytest.mark.parametrize(
    ("estimator", "n", "d"),
    [
        (mr.KLIEP(l2=1e-2), 237, 10),
        (mr.KLIEP(l2=1e-3), 237, 10),
        (mr.KLIEP(l2=0.1, solver="lbfgs"), 100, 5),
    ],
)
def test_the_penalty_that_the_warning_names_is_a_remedy(estimator, n, d):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mr.density_ratio(rng.normal(2, 1, (n, d)), rng.normal(size=(n, d)), estimator)


def correlated_columns(rng):
    X1, X0 = rng.normal(0.1, 1, (600, 300)), rng.normal(size=(500, 300))
    X0[:, 1:5] += X0[:, :1]
    return X1, X0


def no_spread(rng):
    return rng.random((20, 30)), np.repeat(rng.random((1, 30)), 3, axis=0)


@pytest.mark.parametrize(
    ("name", "l2", "make"),
    [
        ("KLIEP", 0.01, correlated_columns),
        ("JS", 0.01, correlated_columns),
        ("KLIEP", 0.1, no_spread),
    ],
)
def test_both_solvers_find_the_optimum_under_a_weak_penalty_of_columns(name, l2, make):
    """Nearly as many columns as rows, or features of no spread."""
    samples = make(np.random.default_rng(6))
    first = mr.density_ratio(*samples, made(name, l2=l2, solver="lbfgs", tol=1e-6))
    second = mr.density_ratio(*samples, made(name, l2=l2, solver="newton"))
    assert first.converged_
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-3)


@pytest.mark.parametrize("name", DIVERGING)
def test_in_a_batch_those_without_an_optimum_are_marked_and_others_solved(name):
    rng = np.random.default_rng(0)
    good = rng.normal(0.3, 1, (200, 2)), rng.normal(size=(200, 2))
    tables = [np.array(each) for each in zip(good, separated(), BORDER(), strict=True)]
    fits = fit_batch(ESTIMATORS[name], *tables)
    assert fits.has_optimum.tolist() == fits.converged.tolist() == [True, False, False]


def test_naive_bayes_names_the_columns_without_an_optimum():
    X1, X0 = half_separated()
    with pytest.warns(NoFiniteOptimumWarning, match=r"\['x1'\].*KLIEP\(l2=0.01\)"):
        ratio = mr.density_ratio(X1, X0, mr.NaiveBayesRatio())
    assert ratio.column_converged_.tolist() == [True, False]
    assert not ratio.converged_
    assert mr.density_ratio(X1, X0, mr.NaiveBayesRatio(mr.KLIEP(l2=0.01))).converged_


# No false alarms: warnings are errors.

COLUMNS = {
    "normal": lambda rng, n: (rng.normal(size=n), rng.normal(0.3, 1, n)),
    "skewed": lambda rng, n: (rng.exponential(size=n), 1.2 * rng.exponential(size=n)),
    "heavy tails": lambda rng, n: np.add(rng.standard_t(2.1, (2, n)), [[0.0], [0.2]]),
    "very skewed": lambda rng, n: rng.lognormal([[0.0], [0.1]], 1.2, (2, n)),
    "binary": lambda rng, n: (rng.random((2, n)) < [[0.3], [0.4]]).astype(float),
    "bounded": lambda rng, n: (rng.uniform(size=n), rng.uniform(size=n) ** 0.8),
}


def well_posed(seed, offsets=(0.0, 1e3, 1e6)):
    """Columns of all kinds and scales, where class 0 surrounds the mean of class 1."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(100, 400)), int(rng.integers(1, 5))
    kinds = rng.choice(sorted(COLUMNS), d)
    lower, upper = zip(*(COLUMNS[kind](rng, n) for kind in kinds), strict=True)
    scale = 10.0 ** rng.integers(-8, 9, d)
    shift = rng.choice(offsets, d)
    return tuple((np.array(columns).T + shift) * scale for columns in (upper, lower))


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_well_posed_problem_is_solved(seed):
    X1, X0 = well_posed(seed)
    assert mr.density_ratio(X1, X0, mr.KLIEP()).converged_
    assert mr.density_ratio(X1, X0, mr.NaiveBayesRatio()).converged_
    assert fit_batch(mr.KLIEP(), X1[None], X0[None]).converged.all()


def with_mixtures(seed, offset=0.0):
    """Well-posed samples in unit scale, and the same with mixtures of the columns."""
    X1, X0 = well_posed(seed, offsets=(0.0,))
    scale = X0.std(axis=0)
    X1, X0 = X1 / scale + offset, X0 / scale + offset
    mixing = np.random.default_rng(seed).normal(size=(X1.shape[1], 2))
    return (X1, X0), (np.c_[X1, X1 @ mixing], np.c_[X0, X0 @ mixing])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("error::missratio.exceptions.NoFiniteOptimumWarning")
@pytest.mark.parametrize("name", DIVERGING)
@pytest.mark.parametrize("seed", range(10))
def test_collinear_features_predict_what_fewer_do(name, seed):
    few, many = with_mixtures(seed)
    fewer, more = (mr.density_ratio(*samples, made(name)) for samples in (few, many))
    np.testing.assert_allclose(
        more.predict_log_ratio(many[1]), fewer.predict_log_ratio(few[1]), atol=1e-5
    )


def test_all_levels_of_a_category_predict_what_all_but_one_do():
    rng = np.random.default_rng(0)
    levels = np.eye(4)
    X1 = levels[rng.choice(4, 500, p=[0.4, 0.3, 0.2, 0.1])]
    X0 = levels[rng.choice(4, 500)]
    for estimator in (mr.KLIEP(), mr.FDivergenceRatio("js"), mr.KLIEP(solver="lbfgs")):
        every = mr.density_ratio(X1, X0, estimator).predict_ratio(levels)
        fewer = mr.density_ratio(X1[:, 1:], X0[:, 1:], estimator)
        np.testing.assert_allclose(every, fewer.predict_ratio(levels[:, 1:]), rtol=1e-5)
        np.testing.assert_allclose(every, X1.mean(axis=0) / X0.mean(axis=0), rtol=1e-5)


def test_a_status_is_measured_and_not_assumed(two_normals):
    X, y = two_normals(shift=1.0)
    with pytest.warns(ConvergenceWarning, match="it ended after 1 iter"):
        ratio = mr.KLIEP(max_iter=1).fit(X, y)
    assert not ratio.converged_
    assert ratio.n_iter_ == 1
