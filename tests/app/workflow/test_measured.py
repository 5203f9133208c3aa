"""Errors by the labels of a table: counted, with exact intervals, and in words."""

import numpy as np
import pytest
from forging import sample, several, sound, table
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.app.workflow.predict import MeasuredErrors


@pytest.fixture(scope="module")
def classes():
    return table(several(LogisticRegression()))


def test_rows_without_a_label_or_with_another_are_told_and_count_nowhere(classes):
    measured = MeasuredErrors(classes)
    measured.add(["0", "0", None, "9", "2"], np.array([0, 1, 0, 0, 2]))
    facts = measured.facts()
    assert facts["unknown_labels"] == 2
    assert facts["classes"]["0"]["called"] == {"0": 1, "1": 1, "2": 0}
    assert measured.words == (
        "By the labels in 'y': 1 of 2 0 are called another class (50.0%; at most 40% "
        "was promised); 1 of 1 2 are found (100.0%); 2 rows have no label or another "
        "one."
    )


def test_a_class_without_a_row_has_no_share_and_no_words(classes):
    measured = MeasuredErrors(classes)
    measured.add(["0"] * 4, np.zeros(4, dtype=int))
    found = measured.facts()["classes"]
    assert set(found) == {"0"}
    assert " 1 are found" not in measured.words
    # Clopper and Pearson: none of four is at most 1 − 0.025^(1/4).
    assert found["0"]["wrong"]["high"] == pytest.approx(beta.ppf(0.975, 1, 4))


def test_each_group_has_a_line_and_lost_labels_have_one_together():
    measured = MeasuredErrors(sound("grouped table"))
    measured.add(
        ["0", "0", "1", None, "7"], np.array([0, 1, 1, 0, 1]), ["a", "a", "b", "b", "c"]
    )
    first, *lines = measured.words.splitlines()
    assert first == "By the labels in 'y':"
    assert lines == [
        "- group 'a': 1 of 2 0 are called 1 (50.0%; at most 20% was promised)",
        "- group 'b': 1 of 1 1 are found (100.0%)",
        "- 2 rows have no label or another one",
    ]


def test_a_blank_label_is_no_class_called_none():
    X, codes = sample(3)
    fitted = mr.MulticlassNeymanPearsonClassifier(
        LogisticRegression(), alpha={"None": 0.4}, random_state=0
    ).fit(X, np.array(["None", "a", "b"])[codes])
    measured = MeasuredErrors(table(fitted))
    measured.add([None, "None"], np.array([0, 0]))
    # A batch of no row changes nothing.
    measured.add([], np.zeros(0, dtype=int))
    assert measured.facts()["unknown_labels"] == 1
    assert measured.facts()["classes"]["None"]["called"]["None"] == 1
