"""A method by default, with the reason, and none that can't deal with the table."""

import numpy as np
import pytest
from forging import sample, several, sound, table
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.app.workflow.methods import (
    METHODS,
    Situation,
    candidates,
    choose_method,
    reason_of,
)
from missratio.app.workflow.predict import MeasuredErrors
from missratio.classifier import CandidatePower, PowerComparison
from missratio.exceptions import TableError


def situation(missing="nothing", rows=10_000, columns=5):
    return Situation(columns, 0, missing, rows, 0)


def test_enough_complete_rows_make_a_joint_fit():
    assert choose_method("auto", situation(rows=200))[0] == "js"
    assert choose_method("auto", situation("values", rows=200))[0] == "kliep"
    few = choose_method("auto", situation("values", rows=199))
    assert few[0] == "imputed-logistic"
    assert "199 complete rows" in few[1]
    assert choose_method("auto", situation(rows=199))[0] == "kliep-cv"
    assert choose_method("auto", situation(rows=49))[0] == "naive-bayes"
    assert choose_method("auto", situation(rows=1999, columns=1000))[0] == "naive-bayes"


@pytest.mark.parametrize("name", METHODS)
def test_what_is_asked_for_is_taken(name):
    assert choose_method(name, situation()) == (name, "as asked for")


@pytest.mark.parametrize(
    ("name", "missing", "said"),
    [
        *(("logistic", missing, r"'kliep', 'js', 'kliep-cv', .*'trees'")
          for missing in ("values", "ignored")),
        *(("imputed-trees", missing, r"nothing to draw from.*'trees'\.$")
          for missing in ("rows", "ignored")),
    ],
)  # fmt: skip
def test_a_method_that_blanks_rule_out_is_refused(name, missing, said):
    with pytest.raises(TableError, match=said):
        choose_method(name, situation(missing))


def test_every_method_that_deals_with_a_table_is_compared():
    kernels = {"ulsif", "rulsif", "kernel-kliep", "kmm"}
    common = {"kliep", "js", "kliep-cv", "naive-bayes", "trees"}
    imputed = {"naive-bayes", "imputed-trees", "imputed-logistic"}
    for made, expected in (
        (situation("nothing"), common | kernels),
        (situation("rows"), common | kernels),
        (situation(columns=20), common),
        (situation("values"), imputed | {"kliep", "js"}),
        (situation("values", rows=50), imputed),
        # A method that can't read blanks would be shown at chance level.
        (situation("ignored"), {"indicators", "indicators-js", "trees"}),
    ):
        assert set(candidates(made)) == expected


def test_what_is_most_different_comes_next_as_time_may_run_out():
    assert list(candidates(situation()))[:2] == ["js", "trees"]


def compared(*powers):
    found = tuple(CandidatePower(name, power, 0.01) for name, power in powers)
    best = max(found, key=lambda each: each.power)
    return PowerComparison(best.name, found, 0.05, 5, 60.0)


def test_the_choice_is_said_in_a_sentence():
    both = compared(("kliep", 0.28), ("trees", 0.51))
    assert reason_of(both, "kliep", "") == (
        "trees",
        "the best of 2 methods compared on training rows left out in turn, in at most "
        "60 s (shares found there, at an error of 5%: trees 51%, kliep 28%)",
    )


# Errors by the labels of a table: counted, with exact intervals, and in words.


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
