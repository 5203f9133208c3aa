"""What can be seen to be wrong is said; what is right is not disturbed."""

import warnings

import numpy as np
import pytest
from classifiers import certified
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import (
    NoPowerWarning,
    RepeatedRowsWarning,
)
from missratio.classifier.reading import warn_of_repeated_rows

STEP = mr.StepMissingness([1.0, 0.0], 0.0, 0.8)


class Backwards(LogisticRegression):
    """Ranks rows the wrong way round."""

    def decision_function(self, X):
        return -super().decision_function(X)


def test_a_certificate_without_power_is_named(two_normals):
    X, y = two_normals(300, 2)
    with pytest.warns(NoPowerWarning, match="150 calibration rows have the same score"):
        certified(DummyClassifier()).fit(X, y)
    with pytest.warns(NoPowerWarning, match="same score"):
        certified(DummyClassifier().fit(X, y)).calibrate(X[y == 0])
    with pytest.warns(NoPowerWarning, match="none of 300 rows of the other class"):
        certified(Backwards()).fit(X + 9 * y[:, None], y)


def test_training_rows_are_known_again(two_normals):
    X, y = two_normals(300, 2, shift=1.5)
    model = LogisticRegression().fit(X, y)
    rows = X[y == 0]
    with pytest.warns(RepeatedRowsWarning, match="100% of the calibration rows"):
        certified(model).calibrate(rows, X0_training=rows)
    # Every patient twice: half of the pairs are split.
    with pytest.warns(RepeatedRowsWarning, match="are training rows as well"):
        certified(mr.KLIEP()).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))


@pytest.mark.parametrize("copies", [3, 5, 8, 12])
def test_any_number_of_copies_is_noticed(two_normals, copies):
    X, y = two_normals(100, 2, shift=1.5)
    many = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    with pytest.warns(RepeatedRowsWarning, match="are training rows as well"):
        certified(mr.KLIEP()).fit(*many)
    model = LogisticRegression().fit(X, y)
    with pytest.warns(RepeatedRowsWarning, match="100% .* more than once"):
        certified(model).calibrate(many[0][many[1] == 0])


def test_numbers_of_copies_may_differ():
    rng = np.random.default_rng(0)
    for copies in (rng.integers(5, 9, 100), 1 + rng.poisson(1, 100)):
        rows = np.repeat(rng.normal(size=(100, 2)), copies, axis=0)
        with pytest.warns(RepeatedRowsWarning, match="more than once"):
            warn_of_repeated_rows(rows)


def determined(x):
    return np.column_stack([x, 2 * x, x**2])


def kinds(rng, n, kinds):
    return kinds[rng.integers(0, len(kinds), n)]


COINCIDING = {
    "rounded": lambda rng, n: np.round(rng.normal(size=(n, 1)), 3),
    "correlated": lambda rng, n: np.round(
        rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, 2)), 1
    ),
    "determined": lambda rng, n: np.round(determined(rng.normal(size=n)), 3),
    "categories": lambda rng, n: kinds(
        rng, n, rng.integers(0, 12, (n // 2, 5)).astype(float)
    ),
    "few kinds": lambda rng, n: kinds(rng, n, rng.normal(size=(4, 3))),
    "zeros": lambda rng, n: np.where(
        rng.random((n, 3)) < 0.7, 0.0, rng.normal(size=(n, 3))
    ),
    "mixed": lambda rng, n: np.column_stack(
        [np.rint(rng.gamma(4, 10, n)), rng.integers(0, 2, n)]
    ),
}


@pytest.mark.parametrize("draw", COINCIDING.values(), ids=list(COINCIDING))
@pytest.mark.parametrize("n_rows", [60, 1000, 4000])
def test_independent_rows_that_coincide_are_not_accused(draw, n_rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(10):
            rows = draw(np.random.default_rng(seed), n_rows)
            warn_of_repeated_rows(rows[::2], rows[1::2])
            warn_of_repeated_rows(rows)


@pytest.mark.parametrize("steps", [5, 20, 60])
def test_training_rows_are_known_again_where_columns_are_rounded(steps):
    rng = np.random.default_rng(steps)
    rows = np.c_[rng.integers(0, steps, (1200, 2)), rng.normal(size=(1200, 2)).round(1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_repeated_rows(rows[:400], rows[400:])
    with pytest.warns(RepeatedRowsWarning, match="are training rows as well"):
        warn_of_repeated_rows(rows[:400], rows[200:])


def test_rows_that_repeat_by_chance_are_no_cause_for_alarm(two_normals):
    X, y = two_normals(300, 2, shift=1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certified(mr.FDivergenceRatio("js")).fit(X, y)
        certified(mr.FDivergenceRatio("js")).fit(np.rint(X), y)
        # Copies among training rows alone are no matter.
        warn_of_repeated_rows(X[:100], np.repeat(X[100:200], 3, axis=0))
