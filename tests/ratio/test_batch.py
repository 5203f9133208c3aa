"""A batch of fits is what a loop of fits would give."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.ratio import fit_batch

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = mr.LogisticMissingness([-0.5, 0.0], [1.0, -1.0])
PRINTED = "horvitz-thompson"
FORWARD = {"direction": "forward", "pairs": False}


def draw(n_problems=6, n1=80, n0=100, d=2):
    rng = np.random.default_rng(0)
    upper = rng.normal(0.3, 1, (n_problems, n1, d)) + 5.0
    return upper - 5.0, rng.normal(size=(n_problems, n0, d))


def lose(tables, model, seed=0):
    """Tables that lose rows or entries, or stay as they are."""
    if model is None:
        return tables
    return np.array(
        [mr.corrupt(table, model, seed + i) for i, table in enumerate(tables)]
    )


BASIS = mr.PolynomialBasis(degree=2, interactions="all")
PRODUCT = mr.PolynomialBasis(degree=1, interactions=[(0, 1)])
# How it is fitted, and what the numerator's and the denominator's tables lose.
CASES = [
    (mr.KLIEP(), None, None),
    (mr.KLIEP(l2=0.1), None, None),
    (mr.KLIEP(l2=[0.0, 0.5]), None, None),
    (mr.KLIEP(normalize=PRINTED), None, None),
    (mr.KLIEP(basis=BASIS, l2=0.01), None, None),
    (mr.FDivergenceRatio("js"), None, None),
    (mr.FDivergenceRatio("kl"), None, None),
    *[
        (kind(normalize=normalize), *models)
        for kind in (mr.KLIEP, mr.FDivergenceRatio)
        for normalize in ("hajek", PRINTED)
        for models in ((ROWS, None), (None, ROWS), (ROWS, ROWS))
    ],
    (mr.KLIEP(missingness="ignore"), ROWS, ROWS),
    (mr.KLIEP(missingness="ignore", **FORWARD), ENTRIES, ENTRIES),
    (mr.KLIEP(**FORWARD), None, ENTRIES),
    (mr.KLIEP(direction="reverse"), None, ENTRIES),
    *[
        (estimator, ENTRIES, None)
        for estimator in (
            mr.KLIEP(),
            mr.KLIEP(normalize=PRINTED),
            mr.FDivergenceRatio("kl"),
            mr.FDivergenceRatio("kl", normalize=PRINTED),
            mr.KLIEP(basis=PRODUCT),
            mr.FDivergenceRatio("js", pairs=False),
        )
    ],
]


@pytest.mark.parametrize(("estimator", "model1", "model0"), CASES, ids=str)
def test_a_batch_is_a_loop(estimator, model1, model0):
    X1, X0 = draw(n1=300, n0=300) if estimator.basis is PRODUCT else draw()
    X1, X0 = lose(X1, model1), lose(X0, model0, 50)
    if estimator.missingness is None:
        models = {1: model1, 0: model0}
        estimator = type(estimator)(
            **{**estimator.get_params(False), "missingness": models}
        )
    fits = fit_batch(estimator, X1, X0)
    assert fits.converged.all()
    assert fits.has_optimum.all()
    assert not hasattr(estimator, "coef_")
    for i in range(len(X1)):
        one = mr.density_ratio(X1[i], X0[i], estimator)
        np.testing.assert_allclose(fits.coef[i], one.coef_, atol=1e-7)
        assert fits.log_normalizer[i] == pytest.approx(one.log_normalizer_, abs=1e-7)


def test_the_tables_are_left_as_they_were():
    X1, X0 = draw()
    X1 = lose(X1, ROWS)
    before = X1.copy(), X0.copy()
    X1.flags.writeable = X0.flags.writeable = False
    fit_batch(mr.KLIEP(missingness={1: ROWS}), X1, X0)
    np.testing.assert_array_equal(X1, before[0])
    np.testing.assert_array_equal(X0, before[1])


def test_fewer_rows_than_features_have_no_optimum():
    X1, X0 = draw(d=4)
    fits = fit_batch(mr.KLIEP(), X1, X0[:, :3])
    assert not fits.has_optimum.any()
    assert not fits.converged.any()


def changed(place, value):
    def change(X1, X0):
        X1[place] = value
        return X1, X0

    return change


def same(X1, X0):
    return X1, X0


ANOTHER = (TypeError, "KLIEP, FDivergenceRatio or ObjectiveRatio")
RIDGE = (ValueError, "fit_batch takes a ridge penalty alone")
NO_MODEL = (ValueError, 'missingness="ignore"')
SHAPES = (ValueError, "same problems and columns")
NO_ROW = (ValueError, r"Problem 4 has no \w+ row of class 1")
CELL, ROW = (2, 3, 1), (2, 3)


@pytest.mark.parametrize(
    ("estimator", "change", "error"),
    [
        (mr.KLIEP(), lambda X1, X0: (X1[0], X0[0]), SHAPES),
        (mr.KLIEP(), lambda X1, X0: (X1[:3], X0), SHAPES),
        (mr.KLIEP(), lambda X1, X0: (X1[:, :, :1], X0), SHAPES),
        (mr.KLIEP(), lambda X1, X0: (X1[:, :0], X0), SHAPES),
        (mr.KLIEP(), lambda X1, X0: (X1[:0], X0[:0]), SHAPES),
        (mr.KLIEP(), changed(CELL, np.inf), (ValueError, "inf")),
        (mr.KLIEP(), changed(ROW, np.nan), NO_MODEL),
        (mr.KLIEP(missingness={0: ROWS}), changed(ROW, np.nan), NO_MODEL),
        (mr.KLIEP(missingness={1: ROWS}), changed(4, np.nan), NO_ROW),
        (mr.KLIEP(solver="sgd"), same, (ValueError, "must be one of")),
        (mr.KLIEP(l1=0.1), same, RIDGE),
        (mr.KLIEP(penalty_weights="covariance"), same, RIDGE),
        (mr.KLIEPCV(normalize="hajek"), same, RIDGE),
        (mr.KLIEP(normalize="regression"), same, RIDGE),
        (mr.NaiveBayesRatio(), same, ANOTHER),
        (LogisticRegression(), same, ANOTHER),
        ("kliep", same, ANOTHER),
    ],
)
def test_what_makes_no_sense_is_refused(estimator, change, error):
    with pytest.raises(error[0], match=error[1]):
        fit_batch(estimator, *change(*draw()))
