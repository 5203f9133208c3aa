"""Every estimator reads labels alike, and refuses the same ones."""

import numpy as np
import pytest

import missratio as mr
from missratio._base.reading import read_labels
from missratio.basis import GaussianBasis

X = np.random.default_rng(0).normal(size=(40, 2))
LABELS = ["a", "b"] * 20


def changed(value):
    return np.array([value, *LABELS[1:]], dtype=object)


READERS = {
    "classifier": lambda y: mr.NeymanPearsonClassifier(mr.KLIEP()).fit(X, y),
    "several classes": lambda y: mr.MulticlassNeymanPearsonClassifier(
        mr.KLIEP(), {"a": 0.4}
    ).fit(X, y),
    "groups": lambda y: mr.GroupedNeymanPearsonClassifier(mr.KLIEP()).fit(
        X, y, X[:, 0] > 0
    ),
    "look-ups": lambda y: mr.plan_queries(
        np.where(X > 1, np.nan, X), y, per_feature=1, random_state=0
    ),
    "imputation": lambda y: mr.TiltedImputer().fit(X, y),
    "basis": lambda y: GaussianBasis(5).fit(X, y),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (changed(None), "Every row needs a label: y has none for row 0"),
        (changed(np.nan), "Every row needs a label: y has none for row 0"),
        (changed(3), "labels of y must be of one type: got 3"),
        (LABELS[1:], "inconsistent numbers of samples"),
        (np.where(np.arange(40) < 3, np.inf, 0.0), "contains infinity"),
        (np.where(np.arange(40) == 3, np.nan, 0.0), "y has none for row 3"),
    ],
    ids=["None", "NaN", "mixed", "short", "infinite", "NaN of floats"],
)
def test_labels_are_refused_alike(reader, y, message):
    with pytest.raises(ValueError, match=message):
        READERS[reader](y)


def test_the_nulls_of_pandas_are_no_labels():
    pd = pytest.importorskip("pandas")
    for null in (pd.NA, pd.NaT):
        with pytest.raises(ValueError, match="has none for row 1"):
            read_labels(["a", null])


def test_numbers_that_came_as_objects_are_numbers():
    labels = read_labels(np.array([2, 10], dtype=object))
    assert labels.dtype.kind == "i"


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_blanks_are_nan_whichever_types_pandas_keeps(backend):
    pd = pytest.importorskip("pandas")
    y, Z = np.repeat([0, 1], 150), np.random.default_rng(0).normal(size=(300, 2))
    phi = mr.LogisticMissingness.from_columns({"a": (-1, 1), "b": (-2, 0)})
    X = mr.corrupt(pd.DataFrame(Z + y[:, None], columns=["a", "b"]), phi, 0)
    X["year"], X["old"] = np.arange(300) % 7, np.arange(300) % 2 == 0
    typed = X.convert_dtypes(dtype_backend=backend)
    models = {"missingness": {0: phi, 1: phi}, "random_state": 0}
    for use in (
        lambda rows: mr.learn_missingness(rows, check=False).coef,
        lambda rows: mr.corrupt(rows, phi, 0).astype(float),
        lambda rows: mr.TiltedImputer(**models).fit_transform(rows, y).astype(float),
        lambda rows: mr.NeymanPearsonClassifier(alpha=0.2, **models).fit(rows, y)
        .decision_function(rows),
    ):  # fmt: skip
        np.testing.assert_array_equal(use(typed), use(X))
