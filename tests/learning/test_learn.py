"""Learning φ: the fits, King and Zeng's correction, and what is refused."""

import warnings
from functools import partial

import learning_table as simulation
import numpy as np
import pytest
from data import lost_and_looked_up, separated, stacked
from optional_packages import optional
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.learning import MissingnessWarning

pd = optional("pandas")
pl = optional("polars")

from_lookups = partial(mr.learn_missingness, from_table=False)


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
        values, outcome = stacked(X[~lost][:, columns], revealed[known][:, columns])
        best = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
        best.fit(values, outcome)
        assert learned.coef[columns] == pytest.approx(best.coef_[0], abs=1e-4)
        offset = np.log(known.sum() / lost.sum())
        found = np.atleast_1d(learned.intercept)[j]
        assert found == pytest.approx(best.intercept_[0] - offset, abs=1e-4)


# Separation, and features that tell nothing


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


NAMES = list("abc")


def put(which, at, columns, value=np.nan):
    """Another value in X (0), in what was looked up (1) or in both, by places."""

    def change(X, R, **places):
        for table in (X, R)[which]:
            table[places[at] if isinstance(at, str) else at, columns] = value
        return X, R

    return change


def constant(X, R, **_):
    return tuple(np.where(np.isnan(T), T, [0, 3.0, 0] + T * [1, 0, 1]) for T in (X, R))


def named(X, R, observed, **_):
    R[observed, 1] = 1.0
    return pd.DataFrame(X, columns=NAMES), pd.DataFrame(R, columns=NAMES)


def swapped(X, R, **_):
    return pd.DataFrame(X, columns=NAMES), pd.DataFrame(R, columns=list("bac"))


FIRST, SECOND, BOTH, EVERY = slice(1), slice(1, 2), slice(2), slice(None)


@pytest.mark.parametrize(
    ("change", "rowwise", "message"),
    [
        (
            put(SECOND, "observed", 1, 1.0),
            False,
            "row {observed}, column 1, which isn't",
        ),
        (named, False, "row {observed}, column 'b', which isn't missing"),
        (put(SECOND, "known", 1, np.inf), False, "revealed contains infinity"),
        (put(FIRST, "observed", 1, np.inf), False, "X contains infinity"),
        (lambda X, R, **_: (X, R[:, :1]), False, r"shape of X: got \(600, 1\) and"),
        (lambda X, R, **_: (X[:, 0], R[:, 0]), False, "two-dimensional"),
        (swapped, False, "columns of X, a, b, c, in their order: got b, a, c"),
        (put(SECOND, EVERY, [0, 2]), False, r"Column\(s\) 0, 2 have .*Look up some"),
        (put(BOTH, EVERY, 1), False, r"Column\(s\) 1 are never observed"),
        (put(SECOND, "known", 0), True, "not all entries of row {known}"),
        (
            put(SECOND, EVERY, EVERY),
            True,
            "none revealed, and there is no other column",
        ),
        (put(FIRST, EVERY, EVERY), True, "0, 1, 2 are never observed"),
        (constant, True, r"Column\(s\) 1 are constant"),
    ],
)
def test_what_cannot_be_learned_from(change, rowwise, message):
    X, revealed, _ = lost_and_looked_up(rowwise=rowwise)
    places = {
        "observed": int(np.flatnonzero(~np.isnan(X[:, 1]))[3]),
        "known": int(np.flatnonzero(~np.isnan(revealed[:, 1]))[0]),
    }
    X, revealed = change(X, revealed, **places)
    with pytest.raises(ValueError, match=message.format(**places)):
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


# Tables with next to nothing in them: a model with a band around it, or why not.


def tiny(seed):
    """A few rows, ties, constant columns, a category, half or all of it lost."""
    rng = np.random.default_rng([5, seed])
    n, d = int(rng.choice([6, 12, 25, 60])), int(rng.integers(1, 4))
    Z = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    if rng.random() < 0.4:
        Z = np.round(Z)
    if rng.random() < 0.15:
        Z[:, 0] = 3.0
    Z *= 10.0 ** rng.integers(-8, 9) if rng.random() < 0.2 else 1.0
    places = [[j] for j in range(d)]
    if rng.random() < 0.5:
        Z = np.column_stack([Z, np.eye(3)[rng.integers(3, size=n)][:, 1:]])
        places.append([d, d + 1])
    X, revealed = Z.copy(), np.full(Z.shape, np.nan)
    looks_up = rng.random() < 0.7
    for own in places:
        lost = np.flatnonzero(rng.random(n) < rng.choice([0.05, 0.5, 0.95]))
        X[np.ix_(lost, own)] = np.nan
        count = int(rng.integers(0, len(lost) + 1)) if looks_up else 0
        drawn = rng.permutation(lost)[:count]
        revealed[np.ix_(drawn, own)] = Z[np.ix_(drawn, own)]
    return Z, X, revealed, [own for own in places if len(own) > 1]


def test_tiny_tables_teach_something_or_say_why_not():
    learned = 0
    for seed in range(60):
        Z, X, revealed, categories = tiny(seed)
        with warnings.catch_warnings():
            # A dozen rows may contradict the model, or leave it unsettled.
            warnings.simplefilter("ignore", MissingnessWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                phi = mr.learn_missingness(X, revealed, categories=categories)
            except np.linalg.LinAlgError:
                pytest.fail(f"table {seed} has no solution")
            except ValueError:
                continue
        lower, upper = phi.probability_band(Z, 0.1)
        found = phi.missing_probability(Z)
        assert (lower <= found + 1e-9).all(), seed
        assert (found <= upper + 1e-9).all(), seed
        learned += 1
    assert learned > 20


def test_a_column_that_never_varied_is_not_taught():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    revealed = np.full(X.shape, np.nan)
    revealed[5:25, 1] = X[5:25, 1]
    X[5:, 1], X[:5, 1] = np.nan, 1.0
    phi = simulation.learn(X, revealed)
    (check,) = [c for c in phi.checks if c.kind == "instrument"]
    assert check.statistic == 0.0


def test_levels_that_were_only_looked_up_count():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(80, 1)), np.zeros((80, 2))])
    X[40:, 1:] = np.nan
    with pytest.raises(ValueError, match="one level where it is known"):
        mr.learn_missingness(X, categories=[[1, 2]])
    revealed = np.full(X.shape, np.nan)
    revealed[40:60, 1:] = np.eye(3)[rng.integers(3, size=20)][:, 1:]
    with warnings.catch_warnings(action="ignore", category=MissingnessWarning):
        phi = mr.learn_missingness(X, revealed, categories=[[1, 2]])
    rows = np.column_stack([np.zeros(3), np.eye(3)[:, 1:]])
    found = phi.missing_probability(rows)[:, 1]
    assert found[0] < found[1:].min()
