"""A table's model gives encoded rows the labels that its classifier gives them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from forging import grouped, sample, sound, table, trees, two

import missratio as mr
from missratio._files.cells import Cells
from missratio.app.tables.columns import Encoder, TableColumn

ROWS = {"p": [0.0, 9.0, 3.1, 3.1, None], "q": [0.0, 9.0, 3.1, 3.1, 9.0]}


def test_a_frame_gets_the_labels_of_its_groups():
    classifier = grouped()
    model = table(classifier, group_column="who")
    assert (model.fallback, model.other_class, model.kind) == (0, 1, "groups")
    assert model.fallback_words == ", which keeps the guarantee"
    who = ["a", "b", "a", "c", "a"]
    frame = pa.table({**ROWS, "who": who})
    rows = np.array([*zip(*ROWS.values(), strict=True)][:3], dtype=float)
    expected = classifier.predict(rows, who[:3]).tolist()
    notes = model.decide(model.encode(frame), [*who[:4], None]).notes
    # A group that the model has not, and a row without a score, keep the guarantee.
    assert model.predict(frame).tolist() == [*expected, 0, 0]
    assert model.members(["a", None, "c"]) == ["a", None, None]
    assert notes == {
        3: "group 'c' of 'who' is new, and has no threshold",
        4: "'who' is missing, and each group has its own threshold",
    }
    # A group without a threshold promises nothing.
    first, second = classifier.certificate_.certificates
    lacking = replace(first, certified=False), second
    classifier.certificate_ = replace(classifier.certificate_, certificates=lacking)
    assert [promise.group for promise in model.promises] == ["b"]


def test_a_row_gets_the_other_class_where_its_score_is_above_the_threshold():
    classifier, (X, _) = two(mr.KLIEP()), sample(2)
    model, frame = table(classifier), pa.table({"p": X[:, 0], "q": X[:, 1]})
    above = model.score_samples(frame) > model.certificate.threshold
    assert (model.predict(frame) == above.astype(int)).all()
    assert (model.other_class, model.fallback, model.labels) == (1, 0, [0, 1])


def test_a_row_with_a_category_that_was_never_seen_gets_the_controlled_class():
    """Trees would make something of it, and a score of it could be anything."""
    mixed = Encoder((TableColumn("p"), TableColumn("q", ("u", "v"))), Cells())
    rows = np.array([[9.0, 9.0], [9.0, np.nan]])
    for model in (
        table(two(trees())),
        table(grouped(estimator=trees()), group_column="who"),
    ):
        found = replace(model, encoder=mixed).decide(rows, ["a", "a"])
        assert found.unscored.tolist() == [False, True]
        assert found.codes.tolist() == [1, 0]


@pytest.mark.parametrize("kind", ["several", "order"])
def test_a_frame_of_several_classes_gets_the_classifiers_labels(kind):
    classifier, (X, _) = sound(kind), sample(3)
    model, frame = table(classifier), pa.table({"p": X[:, 0], "q": X[:, 1]})
    labels = model.predict(frame)
    assert (labels == classifier.predict(X)).all()
    assert set(labels.tolist()) == {0, 1, 2}
    assert model.score_columns == ["score_0", "score_1", "score_2"]
    scores = model.score_samples(frame)
    np.testing.assert_array_equal(scores, classifier.class_scores(X))
    found = model.decide(X)
    assert (model.classes_[found.codes] == labels).all()
    assert found.scores.shape == (360, 3)
    # A row of class 0 is wrong where it gets one of those that it must not get.
    assert (model.wrong(found.codes, 0) == (labels != 0)).all()
    assert [(each.label, each.alpha) for each in model.promises] == [
        (0, 0.4),
        (1, 0.45),
    ]
    assert model.fallback == 0
    words = model.fallback_words
    assert ("keeps the guarantee" in words) == (kind == "order")
