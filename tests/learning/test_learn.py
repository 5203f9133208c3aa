"""Learning φ: the fits, King and Zeng's correction, and what is refused."""

from functools import partial

import numpy as np
import pytest
from data import lost_and_looked_up
from optional_packages import optional
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.learning import MissingnessWarning

pd = optional("pandas")
pl = optional("polars")

from_lookups = partial(mr.learn_missingness, from_table=False)


def maximum_likelihood(values, outcome):
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    model.fit(values, outcome)
    return model.intercept_[0], model.coef_[0]


# Fits


@pytest.mark.parametrize("m", [40, 10**6])
@pytest.mark.parametrize("rowwise", [False, True])
def test_maximum_likelihood_with_an_intercept_that_stands_for_all_that_are_missing(
    rowwise, m
):
    """King and Zeng's: it is too low by the log of the share that was looked up."""
    X, revealed, _ = lost_and_looked_up(d=2, m=m, rowwise=rowwise)
    learned = from_lookups(X, revealed, method="ml", rowwise=rowwise)
    assert learned.rowwise == rowwise
    for j in range(1 if rowwise else 2):
        columns = slice(None) if rowwise else slice(j, j + 1)
        lost, known = np.isnan(X[:, j]), ~np.isnan(revealed[:, j])
        values = np.concatenate([X[~lost][:, columns], revealed[known][:, columns]])
        outcome = np.repeat([0, 1], [(~lost).sum(), known.sum()])
        intercept, coef = maximum_likelihood(values, outcome)
        assert learned.coef[columns] == pytest.approx(coef, abs=1e-4)
        offset = np.log(known.sum() / lost.sum())
        found = np.atleast_1d(learned.intercept)[j]
        assert found == pytest.approx(intercept - offset, abs=1e-4)


# Separation, and features that tell nothing


def separated():
    X = np.concatenate([np.linspace(-2.0, 1.0, 80), np.full(20, np.nan)])[:, None]
    revealed = np.full_like(X, np.nan)
    revealed[80:84, 0] = [1.5, 1.7, 2.0, 2.4]
    return X, revealed


def test_separated_values_are_learned_under_firths_penalty():
    X, revealed = separated()
    learned = from_lookups(X, revealed)
    assert np.isfinite(learned.intercept).all()
    assert 1.0 < learned.coef[0] < 30.0
    assert np.isfinite(learned.standard_errors).all()
    low, high = learned.missing_probability([[-1.0], [2.4]])[:, 0]
    assert low < 0.05
    assert high > 0.9
    # What is missing adds up: a fifth of all.
    lower, upper = learned.probability_band([[-1.0], [1.25], [2.4]])
    assert upper[0, 0] < 0.3
    assert lower[1, 0] < 0.01
    assert upper[1, 0] > 0.99


@pytest.mark.parametrize("rowwise", [False, True])
def test_separated_values_have_no_maximum_of_likelihood(rowwise):
    X, revealed = separated()
    if rowwise:
        X, revealed = np.hstack([X, X**2]), np.hstack([revealed, revealed**2])
    with pytest.raises(ValueError, match=r"separated from the observed.*'firth'"):
        from_lookups(X, revealed, method="ml", rowwise=rowwise)


def test_what_is_never_missing_has_no_phi():
    X, revealed, Z = lost_and_looked_up(d=2)
    X[:, 0], revealed[:, 0] = Z[:, 0], np.nan
    learned = from_lookups(X, revealed)
    assert learned.intercept[0] == -np.inf
    assert (learned.missing_probability(Z)[:, 0] == 0.0).all()
    lower, upper = learned.probability_band(Z)
    assert (lower[:, 0] == 0.0).all()
    assert (upper[:, 0] == 0.0).all()
    assert (learned.covariance[0] == 0.0).all()
    # And costs the others nothing of their band.
    alone = from_lookups(X[:, 1:], revealed[:, 1:]).probability_band(Z[:, 1:])
    assert upper[:, 1] == pytest.approx(alone[1][:, 0])


def test_of_a_constant_feature_phi_is_a_number():
    X = np.full((100, 1), 7.0)
    X[:30] = np.nan
    revealed = np.full_like(X, np.nan)
    revealed[:10] = 7.0
    learned = from_lookups(X, revealed)
    assert learned.coef[0] == 0.0
    assert learned.missing_probability([[7.0]])[0, 0] == pytest.approx(0.3, abs=1e-4)
    # All is known of it but for which values went missing: a binomial share.
    assert learned.standard_errors[0, 0] == pytest.approx(
        (100 * 0.3 * 0.7) ** -0.5, rel=1e-3
    )
    lower, upper = learned.probability_band([[7.0]])
    assert 0.2 < lower[0, 0] < 0.25 < 0.35 < upper[0, 0] < 0.4


# Tables


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("rowwise", [False, True])
def test_dataframes_are_learned_from_as_arrays_are(frame, rowwise):
    X, revealed, Z = lost_and_looked_up(d=2, rowwise=rowwise)
    names = ["age", "dose"]
    tables = [
        frame({name: T[:, j] for j, name in enumerate(names)}) for T in (X, revealed, Z)
    ]
    learned = from_lookups(tables[0], tables[1], rowwise=rowwise)
    plain = from_lookups(X, revealed, rowwise=rowwise)
    assert learned.feature_names == ("age", "dose")
    assert plain.feature_names == ("0", "1")
    assert (learned.coef == plain.coef).all()
    bands = learned.probability_band(tables[2]), plain.probability_band(Z)
    assert bands[0][1] == pytest.approx(bands[1][1], rel=1e-9)


# Refusals


def with_cell(which, value):
    """A change of X (0) or of what was looked up (1), at a row that was observed."""

    def change(X, revealed, observed, known):
        (X, revealed)[which][(observed, known)[value == np.inf and which], 1] = value

    return change


def named(X, revealed, observed, known):
    revealed[observed, 1] = 1.0
    return tuple(pd.DataFrame(T, columns=list("abc")) for T in (X, revealed))


def swapped(X, revealed, observed, known):
    X, revealed = (pd.DataFrame(T, columns=list("abc")) for T in (X, revealed))
    return X, revealed[["b", "a", "c"]]


def constant(X, revealed, observed, known):
    for table in (X, revealed):
        table[~np.isnan(table[:, 1]), 1] = 3.0


def blank(which, at):
    def change(X, revealed, observed, known):
        tables = X.copy(), revealed.copy()
        tables[which][:, at] = np.nan
        return tables

    return change


def never_observed(X, revealed, observed, known):
    X[:, 1] = revealed[:, 1] = np.nan


def half_a_row(X, revealed, observed, known):
    revealed[known, 0] = np.nan


@pytest.mark.parametrize(
    ("change", "rowwise", "message"),
    [
        (with_cell(1, 1.0), False, "row {observed}, column 1, which isn't missing"),
        (named, False, "row {observed}, column 'b', which isn't missing"),
        (with_cell(1, np.inf), False, "revealed contains infinity"),
        (with_cell(0, np.inf), False, "X contains infinity"),
        (lambda X, R, *_: (X, R[:, :1]), False, r"shape of X: got \(600, 1\) and"),
        (lambda X, R, *_: (X[:, 0], R[:, 0]), False, "two-dimensional"),
        (swapped, False, "columns of X, a, b, c, in their order: got b, a, c"),
        (blank(1, [0, 2]), False, r"Column\(s\) 0, 2 have missing.*Look up some"),
        (never_observed, False, r"Column\(s\) 1 are never observed"),
        (half_a_row, True, "not all entries of row {known}"),
        (blank(1, slice(None)), True, "none revealed, and there is no other column"),
        (blank(0, slice(None)), True, "0, 1, 2 are never observed"),
        (constant, True, r"Column\(s\) 1 are constant"),
    ],
)
def test_what_cannot_be_learned_from(change, rowwise, message):
    X, revealed, _ = lost_and_looked_up(rowwise=rowwise)
    observed = int(np.flatnonzero(~np.isnan(X[:, 1]))[3])
    known = int(np.flatnonzero(~np.isnan(revealed[:, 1]))[0])
    X, revealed = change(X, revealed, observed, known) or (X, revealed)
    with pytest.raises(
        ValueError, match=message.format(observed=observed, known=known)
    ):
        from_lookups(X, revealed, rowwise=rowwise)


def test_entries_are_no_rows_and_a_method_misspelt_is_told_the_nearest():
    X, revealed, _ = lost_and_looked_up(d=2)
    with pytest.raises(ValueError, match="loses whole rows"):
        from_lookups(X, revealed, rowwise=True)
    with pytest.raises(ValueError, match=r"one of \['firth', 'ml'\].*firth"):
        from_lookups(X, revealed, method="frith")


def test_without_checks_nothing_is_tested_and_the_fit_is_the_same():
    # A column that goes missing by the square of its value, half of it looked up.
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4000, 2))
    X, revealed = Z.copy(), np.full_like(Z, np.nan)
    lost = np.flatnonzero(rng.random(4000) < 0.9 * (np.abs(Z[:, 0]) > 1.0))
    X[lost, 0] = np.nan
    revealed[lost[::2], 0] = Z[lost[::2], 0]
    with pytest.warns(MissingnessWarning, match="linear in the value"):
        tested = from_lookups(X, revealed)
    plain = from_lookups(X, revealed, check=False)
    assert any(check.failed for check in tested.checks)
    assert plain.checks == ()
    assert (plain.coef == tested.coef).all()
    assert (plain.covariance == tested.covariance).all()
