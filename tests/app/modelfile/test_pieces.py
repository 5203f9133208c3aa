"""The pieces of a model: trees, counts, seeds and coefficients; groups in frames."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from forging import COLUMNS, sample
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.linear_model import LogisticRegression
from sound_models import forged, sound

import missratio as mr
from missratio._files import Cells
from missratio.app.modelfile import (
    GroupedTableModel,
    ModelFileError,
    MulticlassTableModel,
    TableModel,
    TrainingData,
)
from missratio.app.modelfile.checks import (
    MOST_COUNTED,
    _check_attributes,
    _check_tree,
    _parts,
    check_methods,
    check_two,
)
from missratio.app.tables import Encoder, TableColumn
from missratio.threshold import CalibrationSample


def tree():
    """A question about the last of two columns, and an answer to each side."""
    nodes = np.zeros(3, PREDICTOR_RECORD_DTYPE)
    nodes["is_leaf"] = [0, 1, 1]
    nodes["left"][0], nodes["right"][0], nodes["feature_idx"][0] = 1, 2, 1
    return nodes


def test_a_tree_that_leads_to_answers_is_sound():
    _check_tree(tree(), 2)
    # As is one that has but an answer.
    _check_tree(tree()[1:2], 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 3), ("left", 0), ("right", 3), ("right", 0), ("feature_idx", 2),
        ("feature_idx", -1), ("is_categorical", 1), ("value", np.inf),
    ],
)  # fmt: skip
def test_a_tree_that_leads_elsewhere_is_refused(field, value):
    nodes = tree()
    nodes[field][0] = value
    with pytest.raises(ModelFileError, match="a tree"):
        _check_tree(nodes, 2)


@pytest.mark.parametrize(
    "nodes", [tree()[:0], tree()[None], np.zeros(3), list(tree())], ids=range(4)
)
def test_nodes_that_are_no_nodes_are_refused(nodes):
    with pytest.raises(ModelFileError, match="a tree has no nodes"):
        _check_tree(nodes, 2)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (mr.TiltedImputer, "n_imputations"),
        (mr.TiltedImputer, "n_rounds"),
        (mr.PolynomialBasis, "degree"),
    ],
)
def test_counts_have_a_largest_value(make, name):
    for value in (1, MOST_COUNTED):
        _check_attributes(make(**{name: value}))
    for value in (MOST_COUNTED + 1, 0, -1, 2.5, "3", None):
        with pytest.raises(ModelFileError, match=f"its {name} is"):
            _check_attributes(make(**{name: value}))


def test_a_seed_is_of_the_size_of_seeds():
    _check_attributes(SimpleNamespace(_redraw_seed={"pool_size": 4}))
    for seed in ({"pool_size": 5}, {}, None, 7):
        with pytest.raises(ModelFileError, match="its seed is none"):
            _check_attributes(SimpleNamespace(_redraw_seed=seed))


@pytest.mark.parametrize(
    "value", [[np.ones(2), np.array([1.0, np.nan])], (np.inf,), "1", np.array(1j)]
)
def test_coefficients_are_finite_in_lists_too(value):
    ratio = mr.KLIEP()
    ratio.coef_, ratio.log_normalizer_ = [np.ones(2), np.zeros(0)], None
    _check_attributes(ratio)
    ratio.coef_ = value
    with pytest.raises(ModelFileError, match="its coef_ aren't finite numbers"):
        _check_attributes(ratio)


class Slotted:
    __slots__ = "inside"


def test_everything_that_a_model_is_made_of_is_looked_at_once():
    """In dicts, their keys, lists, arrays of objects, and slots, however deep."""
    slotted = Slotted()
    slotted.inside = "in a slot"
    array = np.empty(1, dtype=object)
    array[0] = ("in an array", slotted)
    whole = {"a key": [array, {"in a set"}, frozenset(["in another"])]}
    whole["itself"] = whole
    found = list(_parts(whole))
    texts = {part for part in found if isinstance(part, str)}
    assert texts == {
        "a key", "itself", "in an array", "in a slot", "in a set", "in another"
    }  # fmt: skip
    assert sum(part is whole for part in found) == 1


def test_a_value_in_the_place_of_a_method_is_refused():
    class Part:
        def method(self):
            """Whose place a value takes."""

    part = Part()
    part.plain = 5
    check_methods(part)
    part.method = 5
    with pytest.raises(ModelFileError, match="its method takes a method's place"):
        check_methods(part)


def frame_model(kind, classifier, dropped=(), **more):
    training = TrainingData("t.csv", "0" * 64, {0: 300, 1: 300}, {0: {}, 1: {}})
    return kind(classifier, COLUMNS, "y", dropped, "m", training, "{}", **more)


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 2)) + 2.0 * y[:, None]
    groups = np.array(["a", "b"] * 300)
    X[groups == "b"] += 1.0
    return X, y, groups


ROWS = {"p": [0.0, 9.0, 1.6, 1.6, None], "q": [0.0, 9.0, 1.6, 1.6, 9.0]}


@pytest.mark.parametrize("threshold", ["own", "shared"])
def test_a_frame_gets_the_labels_of_its_groups(drawn, threshold):
    X, y, groups = drawn
    levels = {"a": 0.25} if threshold == "shared" else None
    classifier = mr.GroupedNeymanPearsonClassifier(
        LogisticRegression(), alpha=0.2, delta=0.2, threshold=threshold,
        group_alpha=levels, random_state=0,
    ).fit(X, y, groups)  # fmt: skip
    model = frame_model(GroupedTableModel, classifier, ("who",), group_column="who")
    assert model.needs_groups == (threshold == "own")
    assert (model.fallback, model.other_class) == (0, 1)
    assert model.fallback_words == ", which keeps the guarantee"
    who = ["a", "b", "a", "c", "a"]
    table = pa.table({**ROWS, "who": who})
    rows = np.array([*zip(*ROWS.values(), strict=True)][:3], dtype=float)
    expected = classifier.predict(rows, who[:3]).tolist()
    # A group that the model has not, and a row without a score, keep the guarantee.
    limits = model.limits(5, model.members(who))
    if threshold == "own":
        assert model.predict(table).tolist() == [*expected, 0, 0]
        assert limits[3] == np.inf
        assert model.members(["a", None, "c"]).tolist() == ["a", None, None]
    else:
        shared = classifier.predict(rows[2:], ["a"]).tolist()
        assert model.predict(table).tolist() == [*expected, *shared, 0]
        assert (limits == classifier.thresholds_[None]).all()


def test_standard_errors_are_those_of_the_ratio_and_nan_where_a_value_is_missing(drawn):
    X, y, _ = drawn
    classifier = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.3, random_state=0).fit(
        X, y
    )
    covariance = np.diag([0.1, 0.2, 0.3])
    model = frame_model(TableModel, classifier, covariance=covariance)
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 1.0]])
    known = mr.uncertainty.RatioUncertainty(classifier.estimator_, covariance, {})
    _, expected, *_ = known.log_ratio(rows[:2])
    found = model.standard_errors(rows)
    np.testing.assert_allclose(found[:2], expected)
    assert np.isnan(found[2])
    assert np.isnan(model.standard_errors(rows[2:])).all()
    with pytest.raises(ValueError, match="no standard errors"):
        frame_model(TableModel, classifier).standard_errors(rows)


def test_a_row_is_above_the_threshold_where_its_decision_is_above_zero(drawn):
    X, y, _ = drawn
    classifier = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.3, random_state=0).fit(
        X, y
    )
    model = frame_model(TableModel, classifier)
    table = pa.table({"p": X[:, 0], "q": X[:, 1]})
    above = model.decision_function(table) > 0.0
    assert (model.predict(table) == above.astype(int)).all()
    assert (model.other_class, model.fallback) == (1, 0)
    scores = model.score_samples(table)
    np.testing.assert_allclose(
        model.decision_function(table), scores - classifier.threshold_
    )
    classifier.threshold_ = np.inf
    assert (model.decision_function(table) == -np.inf).all()


@pytest.mark.parametrize("place", [0, 7, 599])
def test_a_row_at_the_threshold_gets_the_controlled_class(drawn, place):
    """Certificates are for rows that score strictly above."""
    X, y, groups = drawn
    two = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.3, random_state=0).fit(X, y)
    model = frame_model(TableModel, two)
    two.threshold_ = model.score(X)[0][place]
    assert not model.score(X)[1][place]
    grouped = mr.GroupedNeymanPearsonClassifier(
        LogisticRegression(), alpha=0.2, delta=0.2, random_state=0
    ).fit(X, y, groups)
    model = frame_model(GroupedTableModel, grouped, ("who",), group_column="who")
    scores, _ = model.score(X, groups)
    promises = tuple(
        replace(promise, threshold=float(scores[place]))
        for promise in grouped.certificate_.promises
    )
    grouped.certificate_ = replace(grouped.certificate_, promises=promises)
    assert (model.limits(600, groups) == scores[place]).all()
    _, above = model.score(X, groups)
    assert not above[place]
    assert (above == (scores > scores[place])).all()


def test_a_row_with_a_category_that_was_never_seen_gets_the_controlled_class(drawn):
    """Trees would make something of it, and a score of it could be anything."""
    X, y, groups = drawn
    mixed = Encoder((TableColumn("p"), TableColumn("q", ("u", "v"))), Cells())
    trees = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    two = mr.NeymanPearsonClassifier(trees, alpha=0.3, random_state=0).fit(X, y)
    grouped = mr.GroupedNeymanPearsonClassifier(
        trees, alpha=0.2, delta=0.2, random_state=0
    ).fit(X, y, groups)
    rows = np.array([[9.0, 9.0], [9.0, np.nan], [np.nan, 9.0]])
    plain = replace(frame_model(TableModel, two), encoder=mixed)
    promised = frame_model(GroupedTableModel, grouped, ("who",), group_column="who")
    promised = replace(promised, encoder=mixed)
    for scores, above in (plain.score(rows), promised.score(rows, groups[:3])):
        assert (scores == -np.inf).tolist()[:2] == [False, True]
        assert above.tolist()[:2] == [True, False]


def test_a_classifier_that_was_given_names_gets_them_with_encoded_rows(drawn):
    X, y, _ = drawn
    frame = pa.table({"p": X[:, 0], "q": X[:, 1]})
    classifier = mr.NeymanPearsonClassifier(
        LogisticRegression(), alpha=0.3, random_state=0
    ).fit(frame, y)
    model = frame_model(TableModel, classifier)
    assert model.named(X).column_names == ["p", "q"]
    assert (model.predict(frame) == classifier.predict(frame)).all()
    assert model.fallback_words == ", which keeps the guarantee"


@pytest.mark.parametrize("kind", ["several", "ordered"])
def test_a_frame_of_several_classes_gets_the_classifiers_labels(kind):
    classifier = sound(kind)
    rows = dict.fromkeys(range(3), 120), {label: {} for label in range(3)}
    training = TrainingData("t.csv", "0" * 64, *rows)
    model = MulticlassTableModel(classifier, COLUMNS, "y", (), "m", training, "{}")
    X, _ = sample(3)
    frame = pa.table({"p": X[:, 0], "q": X[:, 1]})
    labels = model.predict(frame)
    assert (labels == classifier.predict(X)).all()
    assert set(labels.tolist()) == {0, 1, 2}
    np.testing.assert_array_equal(model.class_scores(frame), classifier.class_scores(X))
    positions, scores = model.decide(X)
    assert (model.classes_[positions] == labels).all()
    assert scores.shape == (360, 3)
    # A row of class 0 is wrong where it gets one of those that it must not get.
    assert (model.wrong(positions, 0) == (labels != 0)).all()
    assert model.fallback == 0
    words = model.fallback_words
    assert ("keeps the guarantee" in words) == (kind == "ordered")


def test_a_model_of_which_no_calibration_row_was_observed_may_reject_all():
    nothing = CalibrationSample.build(np.zeros(5), np.zeros(5), 2.0)
    model = forged("two", "calibration_.sample", nothing)
    model.threshold_ = np.inf
    model.certificate_ = replace(
        model.certificate_, rows=5, observed=0, certified=False, threshold=np.inf
    )
    check_two(model)


def test_what_is_no_classifier_has_no_file(tmp_path):
    with pytest.raises(ModelFileError, match="can't hold a LogisticRegression"):
        mr.save_model(LogisticRegression(), tmp_path / "m.skops")
