"""At home among scikit-learn's tools: what a data scientist tries on the first day."""

import inspect
import re

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay
from sklearn.utils.estimator_checks import check_estimator

import missratio as mr
from missratio.objective import KLIEPObjective

mpl.use("Agg")
import matplotlib.pyplot as plt

RATIOS = {
    "KLIEP": mr.KLIEP(),
    "KLIEPCV": mr.KLIEPCV(random_state=0),
    "naive Bayes": mr.NaiveBayesRatio(),
    "logistic": mr.FDivergenceRatio("js"),
    "classifier": mr.ClassifierRatio(LogisticRegression()),
    "ulsif": mr.KernelRatio("ulsif", random_state=0),
    "rulsif": mr.KernelRatio("rulsif", random_state=0),
    "kernel KLIEP": mr.KernelRatio("kliep", random_state=0),
    "kmm": mr.KernelRatio("kmm", random_state=0),
    "objective": mr.ObjectiveRatio(KLIEPObjective()),
    "the best": mr.Ratio(random_state=0),
}
CLASSIFIERS = {
    "of a ratio": mr.NeymanPearsonClassifier(mr.KLIEP(), 0.1, random_state=0),
    "of another": mr.NeymanPearsonClassifier(LogisticRegression(), 0.1, random_state=0),
}


# What scikit-learn's checks of every estimator at its defaults may not ask, and why.
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
NO_PENALTY = {
    "check_sample_weights_shape": "a feature is constant in a class: refused",
    "check_sample_weights_not_overwritten": "a feature is constant in a class: refused",
    WEIGHTS: "no finite optimum with fewer rows than features: refused",
}
FOLDS = {
    WEIGHTS: "a row of weight two is one row in standard errors, or left out as one",
    "check_fit2d_1feature": "a class has fewer rows than there are folds: refused",
}
DEFAULTS = {
    "KLIEP": (mr.KLIEP(), NO_PENALTY),
    "KLIEPCV": (mr.KLIEPCV(random_state=0), FOLDS),
    "FDivergenceRatio": (mr.FDivergenceRatio(), NO_PENALTY),
    "ObjectiveRatio": (mr.ObjectiveRatio(KLIEPObjective()), NO_PENALTY),
    "NaiveBayesRatio": (mr.NaiveBayesRatio(), NO_PENALTY),
    "KernelRatio": (
        mr.KernelRatio(random_state=0),
        {
            WEIGHTS: FOLDS[WEIGHTS],
            "check_classifiers_train": "the ratio of separated classes has no bound",
        },
    ),
    "ClassifierRatio": (
        mr.ClassifierRatio(),
        {WEIGHTS: "weights are scaled to their mean"},
    ),
    "Ratio": (mr.Ratio(random_state=0), FOLDS),
    "GaussianBasis": (mr.GaussianBasis(), {}),
    "PolynomialBasis": (mr.PolynomialBasis(), {}),
    "TiltedImputer": (mr.TiltedImputer(), {}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DEFAULTS)
def test_scikit_learns_checks_at_defaults(name):
    estimator, declared = DEFAULTS[name]
    checked = check_estimator(
        estimator, expected_failed_checks=declared, on_skip=None, on_fail=None
    )
    failed = {each["check_name"]: each["exception"] for each in checked
              if each["status"] == "failed"}  # fmt: skip
    assert not failed
    meant = {each["check_name"] for each in checked if each["status"] == "xfail"}
    assert meant == set(declared)


@pytest.mark.filterwarnings("ignore")
def test_a_classifier_at_defaults_fails_checks_only_where_it_cannot_promise():
    checked = check_estimator(mr.NeymanPearsonClassifier(), on_skip=None, on_fail=None)
    failed = [each["exception"] for each in checked if each["status"] == "failed"]
    refusal = re.compile(
        "No threshold certifies|NoCertificateError|controlled_class=0 is not among"
    )
    assert all(refusal.search(str(each)) for each in failed), failed


@pytest.fixture
def far(two_normals):
    """Two classes, and a row of each where no other is."""
    X, y = two_normals(150, 2, shift=1.0)
    return np.concatenate([X, [[40.0, 40.0], [-40.0, -40.0]]]), np.append(y, [1, 0])


@pytest.mark.needs("matplotlib")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*RATIOS, *CLASSIFIERS])
def test_curves_and_importances_of_every_ratio_and_classifier(far, name):
    X, y = far
    y = np.array(["well", "sick"])[y]
    model = (RATIOS | CLASSIFIERS)[name]
    if name in CLASSIFIERS:
        model = model.set_params(controlled_class="well")
    model.fit(X[:-2], y[:-2])
    assert np.isfinite(model.decision_function(X)).all()
    assert RocCurveDisplay.from_estimator(model, X, y).roc_auc > 0.7
    near = X[:-2], y[:-2]
    found = permutation_importance(model, *near, n_repeats=2, random_state=0)
    assert np.isfinite(found.importances).all()
    if name in RATIOS:
        display = CalibrationDisplay.from_estimator(model, X, y, n_bins=4)
        assert np.isfinite(display.prob_pred).all()
    plt.close("all")


@pytest.mark.parametrize(
    ("spread", "chosen"), [(1.0, {"Jensen-Shannon", "KLIEP"}), (0.3, {"kernels"})]
)
def test_a_ratio_without_a_choice_chooses_and_says_why(two_normals, spread, chosen):
    X, y = two_normals(200, 2, shift=float(spread == 1.0))
    X[y == 1] *= spread
    ratio = mr.Ratio(random_state=0).fit(X, y)
    assert next(iter(ratio.comparison_)) in chosen
    assert ratio.comparison_.keys() | ratio.left_out_.keys() == {
        "Jensen-Shannon", "KLIEP", "kernels", "trees",
    }  # fmt: skip
    assert "log loss" in str(ratio.summary())


def test_probabilities_are_those_of_a_stated_prior(two_normals):
    X, y = two_normals(400, 2, shift=1.0)
    ratio = mr.KLIEP().fit(X, y)
    even, rare = ratio.predict_proba(X), ratio.predict_proba(X, prior=0.1)
    np.testing.assert_array_equal(even.argmax(axis=1), ratio.predict(X))
    np.testing.assert_allclose(even.sum(axis=1), 1.0)
    odds = rare[:, 1] / rare[:, 0]
    np.testing.assert_allclose(odds, ratio.predict_ratio(X) / 9.0)
    # Rows of which one in ten is the numerator's have the probabilities they are given.
    chosen = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:44]])
    assert rare[chosen, 1].mean() == pytest.approx(0.1, abs=0.02)
    with pytest.raises(ValueError, match="prior"):
        ratio.predict_proba(X, prior=1.0)


PUBLIC = [getattr(mr, name) for name in mr.__all__]
SIGNATURES = {
    part.__name__: inspect.signature(part)
    for part in PUBLIC
    if callable(part) and not inspect.ismodule(part)
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_alpha_is_the_level_of_an_error_and_defaults_are_short(name):
    parameters = SIGNATURES[name].parameters
    assert "alpha" not in parameters or "delta" in parameters
    assert all(len(repr(each.default)) < 60 for each in parameters.values())
