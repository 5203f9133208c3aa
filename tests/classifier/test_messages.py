"""Errors and warnings of the classifiers say what came, and what helps."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import UnknownGroupWarning


class Columns(ClassifierMixin, BaseEstimator):
    """Gives a number of columns of probabilities, whatever the classes."""

    def __init__(self, n_columns=1):
        self.n_columns = n_columns

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), self.n_columns), 1.0 / self.n_columns)


def draw(n_classes=2):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 200)
    return rng.normal(size=(len(y), 2)) + 2.0 * y[:, None], y


def plain(y=None, **kwargs):
    X, codes = draw()
    given = {"estimator": LogisticRegression(), "alpha": 0.2, **kwargs}
    classifier = mr.NeymanPearsonClassifier(random_state=0, **given)
    return classifier.fit(X, codes if y is None else y)


def several(y=None, **kwargs):
    X, codes = draw(3)
    given = {"estimator": LogisticRegression(), "alpha": {0: 0.2}, **kwargs}
    classifier = mr.MulticlassNeymanPearsonClassifier(random_state=0, **given)
    return classifier.fit(X, codes if y is None else y)


def grouped(groups=("a", "b") * 200, y=None, **kwargs):
    X, codes = draw()
    given = {"estimator": LogisticRegression(), "alpha": 0.2, **kwargs}
    classifier = mr.GroupedNeymanPearsonClassifier(random_state=0, **given)
    return classifier.fit(X, codes if y is None else y, groups)


FITS = [plain, several, grouped]


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("name", ["alpha", "delta"])
def test_levels_are_numbers(fit, name):
    value = {0: "0.1"} if (fit, name) == (several, "alpha") else "0.1"
    with pytest.raises(TypeError, match=f"{name} must be a number, got '0.1' of type"):
        fit(**{name: value})


@pytest.mark.parametrize("name", ["odds_factor", "target_factor", "missingness_delta"])
def test_factors_and_parts_are_numbers(name):
    with pytest.raises(TypeError, match=f"{name} must be a number, got 'x'"):
        plain(**{name: "x"})


def test_a_label_of_another_type_is_said_to_be():
    hint = "They are integers: write 0, not the string '0'"
    with pytest.raises(ValueError, match=hint):
        several(alpha={"0": 0.2})
    with pytest.raises(ValueError, match=hint):
        several(alpha={0: 0.2, 1: 0.2}, order="012")
    for fit in (plain, grouped):
        with pytest.raises(ValueError, match=hint):
            fit(controlled_class="0")
    with pytest.raises(ValueError, match="They are strings: write '0', not the int 0"):
        plain(y=np.repeat(["0", "1"], 200))


@pytest.mark.parametrize("fit", FITS)
def test_what_is_no_estimator_is_named(fit):
    with pytest.raises(TypeError, match=r"estimator must be .* got None"):
        fit(estimator=None)
    with pytest.raises(TypeError, match=r"write LogisticRegression\(\)"):
        fit(estimator=LogisticRegression)


def test_a_fitted_estimator_is_asked_for():
    with pytest.raises(TypeError, match=r"estimator must be .* got None"):
        mr.NeymanPearsonClassifier(None).calibrate(draw()[0])


@pytest.mark.parametrize("fit", FITS)
def test_probabilities_have_a_column_for_each_class(fit):
    with pytest.raises(
        ValueError, match=r"Columns.predict_proba must give .* got shape \(\d+, 1\)"
    ):
        fit(estimator=Columns(1))
    with pytest.raises(ValueError, match=r"got shape \(\d+, 4\)"):
        fit(estimator=Columns(4))


@pytest.mark.parametrize("fit", FITS)
def test_labels_that_are_missing_or_mixed_are_named(fit):
    codes = draw(3 if fit is several else 2)[1]
    labels = codes.astype(object)
    labels[3] = None
    with pytest.raises(ValueError, match=r"y has none for row 3 \(1 such"):
        fit(y=labels)
    labels[3] = np.nan
    with pytest.raises(ValueError, match="y has none for row 3"):
        fit(y=labels)
    labels[3] = "0"
    with pytest.raises(ValueError, match="of one type: got 0, of type int, and the st"):
        fit(y=labels)


def test_objects_that_are_labels_are_taken():
    assert plain(y=draw()[1].astype(object)).certificate_.certified
    names = np.repeat(np.array(["a", "b"], dtype=object), 200)
    assert plain(y=names, controlled_class="a").certificate_.certified


def test_groups_are_one_column():
    two = np.array([["a", "b"]] * 400)
    with pytest.raises(ValueError, match=r"got shape \(400, 2\). To cross several"):
        grouped(two)
    with pytest.raises(ValueError, match="one label for each row: got None"):
        grouped(None)


def test_groups_without_a_threshold_are_named():
    X, _ = draw()
    fitted = grouped(np.array([1, 2] * 200))
    with pytest.warns(
        UnknownGroupWarning,
        match=r"400 of 400 row.*: '1', '2'. .*are 1, 2. They are integers: write 1",
    ):
        assert not fitted.predict(X, np.array(["1", "2"] * 200)).any()
    with pytest.warns(UnknownGroupWarning, match="200 of 400 .*: 3"):
        assert fitted.predict(X, np.array([1, 3] * 200)).any()
    # A float that is the same number is the same group.
    assert fitted.predict(X, np.array([1.0, 2.0] * 200)).any()
