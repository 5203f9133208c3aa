"""What each row does to a fit is what refitting shows."""

import numpy as np
import pytest
from objectives import HellingerObjective

import missratio as mr
from missratio.learning import LearnedMissingness
from missratio.objective import Combination
from missratio.uncertainty import covariance

# Tables are small, so that it shows what each row does.
pytestmark = pytest.mark.filterwarnings(
    "ignore::missratio.uncertainty.UnreliableIntervalWarning"
)

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = mr.LogisticMissingness([-0.5, -1.0], [1.0, -0.5])
MISSING = {
    "none": (None, None),
    "rows": ({1: ROWS}, ROWS),
    "rows of both": ({1: ROWS, 0: ROWS}, ROWS),
    "entries": ({1: ENTRIES}, ENTRIES),
    "entries of both": ({1: ENTRIES, 0: ENTRIES}, ENTRIES),
    "ignored": ("ignore", ENTRIES),
}


class LoggedHellinger(HellingerObjective):
    """Its outer function is not linear: log E g1 + log E g0, without an intercept."""

    fits_intercept = False

    def combine(self, expectations):
        value = np.log(expectations.value).sum(axis=0)
        gradient = 1.0 / expectations.value
        hessian = np.zeros((2, 2, value.shape[0]))
        hessian[0, 0], hessian[1, 1] = -(gradient**2)
        return Combination(value, gradient, hessian)


EXACT = {"tol": 1e-12, "pairs": False}
PRINTED = {**EXACT, "normalize": "horvitz-thompson"}
ESTIMATORS = [
    mr.KLIEP(**EXACT),
    mr.KLIEP(**PRINTED),
    mr.KLIEP("polynomial", l2=0.05, **EXACT),
    mr.KLIEP("polynomial", l2=0.05, **PRINTED),
    mr.FDivergenceRatio("js", **EXACT),
    mr.FDivergenceRatio("js", **PRINTED),
    mr.FDivergenceRatio("kl", **EXACT),
    mr.FDivergenceRatio("kl", l2=0.1, **PRINTED),
    mr.ObjectiveRatio(HellingerObjective(), **EXACT),
    mr.ObjectiveRatio(LoggedHellinger(), **EXACT),
    mr.NaiveBayesRatio(mr.KLIEP(**EXACT)),
    mr.NaiveBayesRatio(mr.KLIEP(l2=0.1, **PRINTED)),
    mr.NaiveBayesRatio(mr.KLIEP("polynomial", l2=0.1, **EXACT)),
    mr.NaiveBayesRatio(mr.FDivergenceRatio("js", **EXACT)),
]


def table(two_normals, name, n=16, seed=3):
    X, y = two_normals(n, 2, seed=seed)
    X += np.array([1.0, -2.0]) * 0.1
    missingness, model = MISSING[name]
    if model is not None:
        X[y == 1] = mr.corrupt(X[y == 1], model, seed)
    if name.endswith("both") or name == "ignored":
        X[y == 0] = mr.corrupt(X[y == 0], model, seed + 1)
    return X, y, missingness


def estimates(fitted):
    return np.append(fitted.coef_, fitted.log_normalizer_)


@pytest.mark.filterwarnings("ignore:Class")
@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_to_first_order_rows_do_what_a_change_of_their_weight_does(
    estimator, name, two_normals, monkeypatch
):
    monkeypatch.setattr(covariance, "LARGEST_LEVERAGE", 0.0)
    X, y, missingness = table(two_normals, name)
    estimator = estimator.set_params(missingness=missingness)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    step, moved = 1e-5, []
    for i in range(len(y)):
        ends = []
        for sign in (1.0, -1.0):
            changed = weight.copy()
            changed[i] *= 1.0 + sign * step
            ends.append(estimates(estimator.fit(X, y, changed)))
        moved.append((ends[0] - ends[1]) / (2.0 * step))
    expected = np.array(moved).T @ np.array(moved)
    found = mr.ratio_uncertainty(estimator.fit(X, y, weight), X, y, weight).covariance
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5 * expected.max())


@pytest.mark.parametrize("basis", ["linear", mr.GaussianBasis(4, random_state=0)])
@pytest.mark.parametrize("name", ["none", "rows of both", "entries"])
def test_divided_by_one_less_leverage_they_do_what_leaving_them_out_does(
    name, basis, two_normals
):
    X, y, missingness = table(two_normals, name, n=150)
    estimator = mr.KLIEP(basis, missingness=missingness, l2=0.02)
    centre = estimates(estimator.fit(X, y))
    found = mr.ratio_uncertainty(estimator, X, y).covariance
    left_out = []
    for i in range(len(y)):
        # A weight of zero leaves a row out, and the basis where it is.
        weight = np.ones(len(y))
        weight[i] = 0.0
        left_out.append(estimates(estimator.fit(X, y, weight)) - centre)
    jackknife = np.array(left_out).T @ np.array(left_out)
    ratio = np.sqrt(np.diagonal(found) / np.diagonal(jackknife))
    # log N̂ is curved in θ.
    np.testing.assert_allclose(ratio[:-1], 1.0, atol=0.03)
    np.testing.assert_allclose(ratio[-1], 1.0, atol=0.15)


@pytest.mark.filterwarnings("ignore:Class")
@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [
        mr.KLIEP(**EXACT),
        mr.KLIEP("polynomial", l2=0.05, **EXACT),
        mr.KLIEP(**PRINTED),
        mr.FDivergenceRatio("js", **EXACT),
        mr.FDivergenceRatio("kl", **EXACT),
        mr.NaiveBayesRatio(mr.KLIEP(**EXACT)),
    ],
    ids=str,
)
def test_a_phi_learned_elsewhere_adds_what_its_error_does(
    estimator, rowwise, two_normals, monkeypatch
):
    X, y = two_normals(80, 2, seed=1)
    truth = ENTRIES if not rowwise else mr.LogisticMissingness(-0.5, [1.0, -0.5], True)
    models = {}
    for label in (0, 1):
        Z = X[y == label].copy()
        X[y == label] = mr.corrupt(Z, truth, label)
        gone = np.isnan(X[y == label])
        models[label] = mr.learn_missingness(
            X[y == label], np.where(gone, Z, np.nan), rowwise=rowwise
        )

    def fit(models):
        return estimator.set_params(missingness=models).fit(X, y)

    known = {
        label: mr.LogisticMissingness(model.intercept, model.coef, rowwise)
        for label, model in models.items()
    }
    expected = mr.ratio_uncertainty(fit(known), X, y).covariance
    for label, model in models.items():
        start = np.atleast_1d(np.asarray(model.intercept))
        parameters = np.concatenate([start, np.asarray(model.coef)])
        size, slopes = len(start), []
        for i in range(len(parameters)):
            ends = []
            for step in (1e-5, -1e-5):
                at = parameters.copy()
                at[i] += step
                first = float(at[0]) if rowwise else at[:size]
                moved = mr.LogisticMissingness(first, at[size:], rowwise)
                ends.append(estimates(fit({**known, label: moved})))
            slopes.append((ends[0] - ends[1]) / 2e-5)
        covariance = model.covariance
        if not rowwise:
            covariance = np.zeros((4, 4))
            for j in range(2):
                covariance[np.ix_([j, 2 + j], [j, 2 + j])] = model.covariance[j]
        expected = expected + np.array(slopes).T @ covariance @ np.array(slopes)
    fitted = fit(models)
    assert mr.ratio_uncertainty(fitted, X, y).learned_on == {0: "same", 1: "same"}
    monkeypatch.setattr(LearnedMissingness, "was_learned_from", lambda *_: False)
    found = mr.ratio_uncertainty(fitted, X, y)
    np.testing.assert_allclose(
        found.covariance, expected, rtol=1e-4, atol=1e-6 * expected.max()
    )
    assert found.learned_on == {0: "other", 1: "other"}
