"""KLIEPCV: what a fold's score is, what is chosen, and what is refused."""

import numpy as np
import pytest
from data import corrupted, stacked
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    check_cv,
)

import missratio as mr
from missratio.exceptions import WeightConcentrationWarning
from missratio.ratio.base import Two, deal_folds
from missratio.rows import ClassRows, MemorySource

HALF = mr.FunctionMissingness(lambda z: 0.5 * (z > 0), rowwise=False, maximum=0.5)


def sparse_table(n=150, d=15, shift=1.0, seed=0):
    """Two classes that differ in the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d))
    X[:n, 0] += shift
    return X, np.repeat([1, 0], n)


# Scores.


@pytest.mark.parametrize("units", ["uniform", "standard-error", "covariance"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_fold_is_scored_by_kliep_fitted_to_the_others(units, penalty):
    X, y = sparse_table(60, 3, shift=0.5)
    grid = {"l1_grid": [0.0], "l2_grid": [0.0], f"{penalty}_grid": [3.0, 1.0]}
    search = mr.KLIEPCV(penalty_weights=units, cv=3, random_state=0, tol=1e-10, **grid)
    search.fit(X, y)
    random = np.random.RandomState(0)
    folds = np.concatenate([random.permutation(60).argsort() % 3 for _ in range(2)])
    results = search.cv_results_
    np.testing.assert_array_equal(results[f"param_{penalty}"], [3.0, 1.0])
    for i, strength in enumerate([3.0, 1.0]):
        plain = mr.KLIEP(penalty_weights=units, **{penalty: strength})
        for fold in range(3):
            fitted = clone(plain).fit(X[folds != fold], y[folds != fold])
            above, below = (X[(folds == fold) & (y == label)] for label in (1, 0))
            score = fitted.predict_log_ratio(above).mean()
            score += 1.0 - fitted.predict_ratio(below).mean()
            found = results[f"split{fold}_test_score"][i]
            assert found == pytest.approx(score, abs=2e-3)


def test_the_best_mean_score_is_chosen_and_fitted_to_all_rows():
    X, y = sparse_table()
    search = mr.KLIEPCV(l1_grid=[0.5, 1.0], random_state=0).fit(X, y)
    results = search.cv_results_
    best = results["mean_test_score"].argmax()
    assert search.l1_ == results["param_l1"][best]
    assert search.l2_ == results["param_l2"][best]
    plain = mr.KLIEP(l1=search.l1_, l2=search.l2_, penalty_weights="covariance")
    np.testing.assert_array_equal(search.coef_, plain.fit(X, y).coef_)
    assert len(results["mean_test_score"]) == 18
    splits = [results[f"split{i}_test_score"] for i in range(5)]
    np.testing.assert_allclose(results["mean_test_score"], np.mean(splits, axis=0))


def test_the_same_seed_gives_the_same_choice():
    X, y = sparse_table()
    first, second = (mr.KLIEPCV(random_state=3).fit(X, y) for _ in range(2))
    assert first.l2_ == second.l2_
    np.testing.assert_array_equal(first.coef_, second.coef_)
    third = mr.KLIEPCV(random_state=4).fit(X, y)
    assert (
        first.cv_results_["mean_test_score"][0]
        != third.cv_results_["mean_test_score"][0]
    )


@pytest.mark.parametrize("phi", [HALF, mr.StepMissingness([1.0, 0.0], 0.0, 0.9)])
def test_every_fold_has_its_share_of_observed_rows(phi):
    X = mr.corrupt(np.random.default_rng(0).normal(size=(101, 2)), phi, 0)
    rows = ClassRows.of(MemorySource.of(X), 0, {0: phi}, "hajek")
    folds = deal_folds(Two(rows, rows), 5, np.random.RandomState(0))
    complete = ~np.isnan(X).any(axis=1)
    for counted in (np.ones(101, dtype=bool), complete, ~complete):
        counts = [held.numerator[counted].sum() for _, held in folds]
        assert max(counts) - min(counts) <= 1


SPLITTERS = {
    "KFold": KFold(3, shuffle=True, random_state=0),
    "ShuffleSplit": ShuffleSplit(3, test_size=0.2, random_state=0),
    "pairs": list(StratifiedKFold(3).split(np.zeros((120, 1)), np.tile([1, 0], 60))),
}


@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS.keys())
def test_a_splitters_folds_are_those_of_grid_search(cv):
    """With labels that alternate, so that a class's rows aren't the table's."""
    X, y = sparse_table(60, 3, shift=0.5)
    mixed = np.arange(120).reshape(2, 60).T.ravel()
    X, y = X[mixed], y[mixed]
    l2, plain = [1.0, 0.1], mr.KLIEP(tol=1e-10)
    search = mr.KLIEPCV(
        l2_grid=l2, cv=cv, normalize="hajek", penalty_weights="uniform", tol=1e-10
    ).fit(X, y)
    for i, (fitted, held) in enumerate(check_cv(cv, y, classifier=True).split(X, y)):
        for place, strength in enumerate(l2):
            ratio = clone(plain).set_params(l2=strength).fit(X[fitted], y[fitted])
            log_ratio = ratio.predict_log_ratio(X[held])
            upper, lower = log_ratio[y[held] == 1], log_ratio[y[held] == 0]
            expected = upper.mean() - np.exp(lower).mean() + 1.0
            found = search.cv_results_[f"split{i}_test_score"][place]
            assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "ratio",
    [
        mr.KernelRatio("kmm", centers=10, sigma_grid=2, flat_within=0, random_state=0),
        mr.Ratio(random_state=0),
    ],
)
def test_every_ratio_with_folds_takes_a_splitter(ratio):
    X, y = sparse_table(60, 2)
    X[0, 0] = np.nan
    ratio = clone(ratio).set_params(missingness="ignore")
    fits = [
        clone(ratio).set_params(cv=cv).fit(X, y)
        for cv in (3, KFold(3, shuffle=True, random_state=1))
    ]
    assert all(np.isfinite(each.predict_ratio(X[1:])).all() for each in fits)


# What is chosen.


def test_l1_finds_the_column_that_matters():
    X, y = sparse_table(300)
    search = mr.KLIEPCV(l1_grid=12, l2_grid=[0.0], random_state=0).fit(X, y)
    assert np.abs(search.coef_).argmax() == 0
    assert np.count_nonzero(search.coef_) < 12
    assert search.coef_[0] == pytest.approx(1.0, abs=0.3)
    first = mr.KLIEPCV(l1_grid=1, l2_grid=[0.0], random_state=0).fit(X, y)
    assert not first.coef_.any()


def test_it_comes_closer_to_the_truth_than_a_weak_penalty_and_a_strong_one():
    errors = {"search": [], "weak": [], "strong": []}
    for seed in range(8):
        X, y = sparse_table(120, 12, seed=seed)
        fits = {
            "search": mr.KLIEPCV(random_state=0),
            "weak": mr.KLIEP(l2=1e-3),
            "strong": mr.KLIEP(l2=1e4, penalty_weights="covariance"),
        }
        for name, estimator in fits.items():
            coef = estimator.fit(X, y).coef_
            errors[name].append(((coef - np.eye(12)[0]) ** 2).sum())
    mean = {name: np.mean(values) for name, values in errors.items()}
    assert mean["search"] < 0.7 * mean["weak"]
    assert mean["search"] < 0.7 * mean["strong"]


# Around it.


def test_it_takes_missing_values_in_both_classes():
    rng, models = np.random.default_rng(0), {0: HALF, 1: HALF}
    Z, y = stacked(rng.normal(size=(900, 2)), rng.normal(0.8, 1, (900, 2)))
    search = mr.KLIEPCV(missingness=models, random_state=0)
    search.fit(corrupted(Z, y, models), y)
    np.testing.assert_allclose(search.coef_, 0.8, atol=0.25)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": 1}, "cv == 1, must be >= 2"),
        ({"cv": 200}, "cv=200 folds need as many rows of each class; class 1 has 150"),
        ({"cv": GroupKFold(3)}, r"Folds by groups .* cv=list\(splitter.split"),
        ({"l2_grid": []}, "l2_grid must be a number of values to try, or a list"),
        ({"l1_grid": [-1.0]}, "l1_grid must be finite and not negative"),
        ({"l2_grid": 0}, "l2_grid == 0, must be >= 1"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        mr.KLIEPCV(**parameters).fit(*sparse_table())


def test_strengths_at_which_a_fold_has_no_optimum_are_not_chosen():
    X, y = sparse_table(20, 3, shift=8.0)
    search = mr.KLIEPCV(l2_grid=[0.0, 0.1], penalty_weights="uniform", random_state=0)
    assert search.fit(X, y).l2_ == 0.1
    assert search.cv_results_["mean_test_score"][1] == -np.inf
    with pytest.raises(ValueError, match="No pair of strengths gives a finite score"):
        mr.KLIEPCV(l2_grid=[0.0], random_state=0).fit(X, y)


# Products that few rows have.


def test_a_product_that_every_row_lacks_is_refused_and_one_of_a_fold_is_not():
    # No more than three rows have both columns.
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.repeat([1, 0], 150)
    X[np.arange(3, 150), np.arange(3, 150) % 2] = np.nan
    basis = mr.PolynomialBasis(1, interactions="all")
    products = mr.KLIEPCV(basis, missingness={1: HALF}, random_state=0)
    with pytest.warns(WeightConcentrationWarning, match="'x0 x1'"):
        assert np.isfinite(products.fit(X, y).coef_).all()
    with pytest.raises(ValueError, match=r"the 5 folds\. .*never observed.*lower cv"):
        clone(products).set_params(normalize="hajek").fit(X, y)
    X[:3, 0] = np.nan
    with pytest.raises(ValueError, match=r"\['x0', 'x1'\] are never observed together"):
        products.fit(X, y)
