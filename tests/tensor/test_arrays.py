"""Arrays of other libraries on the host give the numbers of NumPy's arrays."""

import numpy as np
import pytest
from data import corrupted

import missratio as mr

PHI = {1: mr.LogisticMissingness([-2.0, -1.0, -np.inf], [0.4, 0.2, 0.0])}
CERTIFIED = {"alpha": 0.3, "random_state": 0}
IMPUTER = mr.TiltedImputer(PHI, n_imputations=2, unlabelled=1, random_state=0)
ESTIMATORS = {
    "KLIEP": mr.KLIEP(),
    "missing values": mr.KLIEP(missingness=PHI),
    "divergence": mr.FDivergenceRatio("js"),
    "naive Bayes": mr.NaiveBayesRatio(missingness=PHI),
    "kernels": mr.KernelRatio(flat_within=0.0, random_state=0),
    "a learner's": mr.ClassifierRatio(),
    "a certificate": mr.NeymanPearsonClassifier(
        mr.KLIEP(), missingness=PHI, controlled_class=1, **CERTIFIED
    ),
    "several classes": mr.MulticlassNeymanPearsonClassifier(
        mr.ClassifierRatio(), alpha={0: 0.4}, random_state=0
    ),
    "imputations": mr.ImputationEnsemble(IMPUTER, mr.FDivergenceRatio("js")),
}


@pytest.fixture(params=["array_api_strict", "torch"])
def library(request):
    """How a library makes an array, and what its arrays are."""
    module = pytest.importorskip(request.param)
    kind = module.Tensor if request.param == "torch" else type(module.asarray(0))
    return module.asarray, kind


def lossy():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    Z = rng.normal(0.4 * y[:, None], 1.0, (600, 3))
    return Z, corrupted(Z, y, PHI), y


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scores_are_the_same_and_labels_are_of_the_library(name, library):
    as_array, kind = library
    Z, X, y = lossy()
    estimator = ESTIMATORS[name]
    if not (estimator.get_params().get("missingness") or name == "imputations"):
        X = Z
    here = estimator.fit(X, y)
    score = getattr(here, "decision_function", getattr(here, "class_scores", None))
    expected, labels = score(Z), here.predict(Z)
    estimator.fit(as_array(X), as_array(y))
    np.testing.assert_array_equal(score(as_array(Z)), expected)
    found = estimator.predict(as_array(Z))
    assert isinstance(found, kind)
    np.testing.assert_array_equal(np.asarray(found), labels)


def test_labels_that_are_texts_stay_numpy_s(library):
    Z, _, y = lossy()
    fitted = mr.KLIEP().fit(Z, np.where(y == 1, "well", "sick"))
    assert isinstance(fitted.predict(library[0](Z)), np.ndarray)


def test_completed_tables_are_of_the_library(library):
    as_array, kind = library
    _, X, y = lossy()
    for method, given in (("fit_impute", (X, y)), ("impute", (X,))):
        expected = getattr(IMPUTER, method)(*given)
        found = getattr(IMPUTER, method)(*map(as_array, given))
        for one, other in zip(found, expected, strict=True):
            assert isinstance(one, kind)
            np.testing.assert_array_equal(np.asarray(one), other)
