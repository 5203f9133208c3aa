"""Every classifier refuses what isn't sound, says what came, and what helps."""

import numpy as np
import pytest
from classifiers import certified
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import UnknownGroupWarning


class Columns(ClassifierMixin, BaseEstimator):
    """Gives columns of probabilities, whatever the classes; none without a value."""

    def __init__(self, n_columns=None, value=None):
        self.n_columns, self.value = n_columns, value

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def __sklearn_is_fitted__(self):
        return True

    def __getattribute__(self, name):
        if name == "predict_proba" and self.n_columns is None:
            raise AttributeError(name)
        return super().__getattribute__(name)

    def predict_proba(self, X):
        value = 1.0 / self.n_columns if self.value is None else self.value
        return np.full((len(X), self.n_columns), value)


def draw(n_classes=2, n=200):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), n)
    return rng.normal(size=(len(y), 2)) + 2.0 * y[:, None], y


def plain(y=None, n=200, **options):
    X, codes = draw(n=n)
    given = {"estimator": LogisticRegression(), "alpha": 0.2, **options}
    return certified(**given).fit(X, codes if y is None else y)


def several(y=None, n=200, **options):
    X, codes = draw(3, n)
    given = {"estimator": LogisticRegression(), "alpha": {0: 0.2}, **options}
    classifier = mr.MulticlassNeymanPearsonClassifier(random_state=0, **given)
    return classifier.fit(X, codes if y is None else y)


def grouped(groups=("a", "b") * 200, y=None, **options):
    X, codes = draw()
    given = {"estimator": LogisticRegression(), "alpha": 0.2, **options}
    classifier = mr.GroupedNeymanPearsonClassifier(random_state=0, **given)
    return classifier.fit(X, codes if y is None else y, groups)


def calibrated(estimator="fitted", rows=None, y=None, **options):
    X, codes = draw()
    if isinstance(estimator, str):
        estimator = LogisticRegression().fit(X, codes if y is None else y)
    return certified(estimator, **options).calibrate(X[:200] if rows is None else rows)


FITS = [plain, several, grouped]
EVERYONE = [
    ({"estimator": LogisticRegression}, r"write LogisticRegression\(\)"),
    ({"estimator": Columns()}, "neither decision_function nor predict_proba"),
    ({"estimator": Columns(1)}, r"must give one score a row.* shape \(\d+, 1\)"),
    ({"estimator": Columns(4)}, r"got shape \(\d+, 4\)"),
    ({"delta": "0.1"}, "delta must be a number, got '0.1' of type"),
    ({"delta": -0.1}, "delta must lie"),
    ({"delta": np.nan}, "delta must lie"),
    ({"odds_factor": "x"}, "odds_factor must be a number, got 'x'"),
    *[({"odds_factor": x}, "odds_factor must be 1 or more")
      for x in (0.5, 0.0, -1.0, np.inf, np.nan)],
    ({"deployment": "full"}, "deployment must be one of"),
    ({"rule": "thinned"}, "rule must be one of"),
    ({"missingness": "ignore"}, "can't be certified"),
    ({"missingness": {7: mr.StepMissingness([1.0, 0.0], 0.0, 0.5)}}, "class 7"),
]  # fmt: skip
HINT = "They are integers: write 0, not the string '0'"


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("change", "match"), EVERYONE)
def test_no_classifier_takes_it(fit, change, match):
    with pytest.raises((TypeError, ValueError), match=match):
        fit(**change)


@pytest.mark.parametrize("value", [np.nan, -0.1, 1.5])
@pytest.mark.parametrize("fit", FITS)
def test_probabilities_are_from_0_to_1(fit, value):
    columns = Columns(3 if fit is several else 2, value)
    with pytest.raises(ValueError, match="must give probabilities, from 0 to 1"):
        fit(estimator=columns)


@pytest.mark.parametrize(
    ("fit", "change", "match"),
    [
        *[(fit, {"alpha": x}, m) for fit in (plain, grouped) for x, m in (
            ("0.1", "alpha must be a number, got '0.1' of type"), (0.0, "alpha must"),
            (1.0, "alpha must lie"))],
        *[(fit, {"on_infeasible": "warn"}, "on_infeasible must be one of")
          for fit in (plain, grouped)],
        *[(fit, {"controlled_class": x}, m) for fit in (plain, grouped)
          for x, m in ((7, r"controlled_class=7 .* \[0, 1\]"), ("0", HINT))],
        (plain, {"y": np.repeat(["0", "1"], 200)}, "They are strings: write '0', not"),
        (plain, {"y": np.zeros(400)}, "class"),
        (plain, {"y": np.arange(400) % 3}, "class"),
        *[(plain, {"calibration_size": x}, "calibration_size")
          for x in (0, 400, 0.0, 1.0, 1000, -5)],
        *[(plain, {"calibration_size": x}, "calibration_size must be")
          for x in ("0.5", None, [0.5], np.nan, 100.0, True)],
        (plain, {"missingness_delta": "x"}, "missingness_delta must be a number, got"),
        *[(plain, {"missingness_delta": x}, r"strictly between 0 and 0\.1")
          for x in (0.0, 0.1, 0.2, -0.1, np.nan)],
        (several, {"alpha": {0: "0.1"}}, "alpha must be a number, got '0.1' of type"),
        (several, {"alpha": {0: 1.5}}, "strictly between"),
        (several, {"alpha": {9: 0.1}}, "names a class 9"),
        (several, {"alpha": {"0": 0.2}}, HINT),
        (several, {"alpha": {0: 0.2, 1: 0.2}, "order": "012"}, HINT),
        (several, {"alpha": {}}, "must map classes"),
        (several, {"alpha": 0.1}, "must map classes"),
        (several, {"order": [0, 1]}, "each class once"),
        (several, {"order": [0, 1, 2]}, "each class but the last"),
        (several, {"choice_size": 0.7}, "to fit on"),
        (several, {"alpha": {0: 0.05, 1: 0.1}, "n": 60}, r"got 30 .* needs "),
        (grouped, {"groups": ["tiny"] * 10 + ["large"] * 390}, "'tiny'.*reject_all"),
        (several, {"y": np.zeros(600, dtype=int)}, "one class only, 0: there is noth"),
        (several, {"y": np.repeat([0, 1, 2], [300, 299, 1]), "alpha": {2: 0.4},
                   "calibration_size": 0.6}, "leaves 0 to fit on"),
        (grouped, {"threshold": "both"}, "threshold"),
        (grouped, {"group_alpha": {"odd": 0.1}}, "names a group 'odd'"),
        (grouped, {"group_alpha": 0.1}, "group_alpha must map groups"),
        (grouped, {"groups": np.array([["a", "b"]] * 400)},
         r"got shape \(400, 2\). To cross several"),
        (grouped, {"groups": None}, "one label for each row: got None"),
        (grouped, {"groups": [None, *"ab" * 199, "a"]}, "have no group"),
        (calibrated, {"estimator": None}, "fitted already"),
        (calibrated, {"estimator": LogisticRegression()}, "call fit"),
        (calibrated, {"y": np.arange(400) % 3}, "Only binary classification"),
        (calibrated, {"rows": np.zeros((100, 3))}, "features"),
    ],
)  # fmt: skip
def test_this_one_does_not_take_it(fit, change, match):
    with pytest.raises((TypeError, ValueError, NotFittedError), match=match):
        fit(**change)


def test_objects_that_are_labels_are_taken():
    assert plain(y=draw()[1].astype(object)).certificate_.certified
    names = np.repeat(np.array(["a", "b"], dtype=object), 200)
    assert plain(y=names, controlled_class="a").certificate_.certified


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.full(400, 7), r"y has labels \['7'\] .* the classes \[0, 1\]"),
        (np.append(np.ones(399), np.nan), "y has none for row 399"),
        (np.ones(399), "inconsistent numbers of samples"),
    ],
)
def test_rows_of_unknown_classes_are_not_weighed_or_drawn(labels, match):
    fitted, (X, _) = plain(), draw()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match=match):
        fitted.row_weights(X, labels)
    with pytest.raises(ValueError, match=match):
        mr.NPROCDisplay.from_estimator(fitted, X, labels)


def test_infinite_values_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        plain().predict([[np.inf, 0.0]])


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
    with pytest.raises(ValueError, match="give groups"):
        fitted.predict(X)
