"""A method by default, with the reason, and none that can't deal with the table."""

import pytest

from missratio.app.workflow._methods import METHODS, Situation, choose_method
from missratio.exceptions import TableError


def situation(missing="nothing", rows=10_000, columns=5):
    return Situation(columns, 0, missing, rows, 0)


def test_enough_complete_rows_make_a_joint_fit():
    assert choose_method("auto", situation(rows=200))[0] == "kliep"
    name, why = choose_method("auto", situation(rows=199))
    assert name == "kliep-cv"
    assert "199 complete rows" in why
    assert choose_method("auto", situation(rows=49))[0] == "naive-bayes"
    assert choose_method("auto", situation(rows=1999, columns=1000))[0] == "naive-bayes"


@pytest.mark.parametrize("name", METHODS)
def test_what_is_asked_for_is_taken(name):
    assert choose_method(name, situation()) == (name, "as asked for")


@pytest.mark.parametrize("missing", ["values", "ignored"])
def test_logistic_regression_needs_complete_rows(missing):
    with pytest.raises(TableError, match="'kliep', 'kliep-cv', 'naive-bayes', 'trees'"):
        choose_method("logistic", situation(missing))


@pytest.mark.parametrize("missing", ["rows", "ignored"])
def test_imputation_needs_single_values_and_a_reason(missing):
    with pytest.raises(TableError, match=r"nothing to draw from.*'trees'\.$"):
        choose_method("imputed-trees", situation(missing))


def test_a_complete_table_is_imputed_once():
    for missing, times in (("nothing", 1), ("values", 5)):
        made = METHODS["imputed-trees"].make(situation(missing))
        assert made.imputer.n_imputations == times


def test_misspelt_methods_are_refused():
    with pytest.raises(TableError, match="Did you mean 'trees'"):
        choose_method("tree", situation())
