"""A method by default, with the reason, and none that can't deal with the table."""

import pytest

from missratio.app.workflow.methods import (
    METHODS,
    Situation,
    candidates,
    choose_method,
    reason_of,
)
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


@pytest.mark.parametrize("missing", ["values", "ignored"])
def test_logistic_regression_needs_complete_rows(missing):
    with pytest.raises(TableError, match=r"'kliep', 'js', 'kliep-cv', .*'trees'"):
        choose_method("logistic", situation(missing))


@pytest.mark.parametrize("missing", ["rows", "ignored"])
def test_imputation_needs_single_values_and_a_reason(missing):
    with pytest.raises(TableError, match=r"nothing to draw from.*'trees'\.$"):
        choose_method("imputed-trees", situation(missing))


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
