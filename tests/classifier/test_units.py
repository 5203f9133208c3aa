"""Units of several rows: split as a whole, and calibrated by one row of each."""

import warnings

import numpy as np
import pytest
from classifiers import certified
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.validation import check_is_fitted


class Recorder(LogisticRegression):
    """Keeps what it was told about units."""

    def fit(self, X, y, groups=None):
        self.groups_ = groups
        return super().fit(X, y)


@pytest.fixture
def patients():
    """Three rows of each patient, with patients of both classes among them."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    units = np.array([f"p{k}" for k in rng.permutation(np.repeat(np.arange(200), 3))])
    return rng.normal(size=(600, 2)) + 1.5 * y[:, None], y, units


def test_units_are_split_as_a_whole(patients):
    X, y, units = patients
    model = certified().fit(X, y, groups=units)
    held, fitted = units[model.calibration_index_], units[model.training_index_]
    assert len(set(held)) == len(held)
    assert not set(held) & set(fitted)
    assert set(y[model.calibration_index_]) == {0}
    assert len(held) == round(len(set(units[y == 0])) / 2)
    assert model.certificate_.rows == len(held)
    # Nothing but the other rows of the units held out is left out.
    assert set(fitted) == set(units) - set(held)
    again = certified(calibration_size=40).fit(X, y, groups=units)
    assert len(again.calibration_index_) == 40
    alone = certified().fit(X, y, groups=np.arange(len(y)))
    assert len(alone.calibration_index_) == 150
    assert len(alone.training_index_) == 450
    with pytest.raises(ValueError, match=r"units of class 0 and leaves"):
        certified(calibration_size=300).fit(X, y, groups=units)


def test_the_certificate_says_whose_error_it_bounds(patients):
    X, y, units = patients
    model = certified().fit(X, y, groups=units)
    assert "random row of a random unit" in model.certificate_.assumptions[-1]
    assert "random row of a random unit" in str(model.certificate_)
    fitted = LogisticRegression().fit(X, y)
    again = certified(fitted).calibrate(X[y == 0], groups=units[y == 0])
    assert again.certificate_.assumptions == model.certificate_.assumptions
    assert "unit" not in str(certified().fit(X, y).certificate_)


def test_one_row_of_each_unit_calibrates(patients):
    X, y, _ = patients
    fitted = LogisticRegression().fit(X, y)
    X0, units = np.repeat(X[y == 0], 3, axis=0), np.repeat(np.arange(300), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = certified(fitted).calibrate(X0, groups=units)
    alone = certified(fitted).calibrate(X[y == 0])
    assert model.certificate_.rows == 300
    assert model.threshold_ == alone.threshold_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        many = np.repeat(X, 6, axis=0), np.repeat(y, 6)
        certified().fit(*many, groups=np.repeat(np.arange(len(y)), 6))


def test_an_estimator_is_told_of_units_if_it_asks(patients):
    X, y, units = patients
    model = certified(Recorder()).fit(X, y, groups=units)
    np.testing.assert_array_equal(
        model.estimator_.groups_, units[model.training_index_]
    )
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    check_is_fitted(certified(search).fit(X, y, groups=units).estimator_)


def test_every_row_has_a_unit(patients):
    X, y, units = patients
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        certified().fit(X, y, groups=units[:5])
    with pytest.raises(ValueError, match=r"1 row.s. have no group.* one of its own"):
        certified().fit(X, y, groups=[None, *units[1:]])
