"""What can be seen to be wrong is said; what is right is not disturbed."""

import time
import warnings

import numpy as np
import pytest
from classifiers import certified
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import (
    NoCertificateError,
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
        certified(model).calibrate(rows, rows)
    # Every patient twice: half of the pairs are split.
    with pytest.warns(RepeatedRowsWarning, match="are training rows as well"):
        certified(mr.KLIEP()).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))


@pytest.mark.parametrize("copies", [3, 5, 8, 12])
def test_any_number_of_copies_is_noticed(two_normals, copies):
    X, y = two_normals(100, 2, shift=1.5)
    for table in (X, np.round(X, 1)):
        many = np.repeat(table, copies, axis=0), np.repeat(y, copies)
        with pytest.warns(RepeatedRowsWarning, match="are training rows as well"):
            certified(mr.KLIEP()).fit(*many)
        model = LogisticRegression().fit(table, y)
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


def test_rows_that_repeat_by_chance_are_no_cause_for_alarm(two_normals):
    X, y = two_normals(300, 2, shift=1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certified(mr.FDivergenceRatio("js")).fit(X, y)
        certified(mr.FDivergenceRatio("js")).fit(np.rint(X), y)
        # Copies among training rows alone are no matter.
        warn_of_repeated_rows(X[:100], np.repeat(X[100:200], 3, axis=0))


@pytest.mark.parametrize("rule", ["auto", "flipped-betting", "betting", "paper"])
def test_that_no_number_of_rows_is_enough_is_said_within_a_second(rule):
    start = time.perf_counter()
    with pytest.raises(NoCertificateError, match="No number of rows up to 1e"):
        mr.classifier.required_calibration_rows(1e-9, 0.01, 0.999, rule)
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize("seed", range(4))
def test_no_more_rows_are_asked_for_than_there_are(seed):
    # Weights that happen to be heavy: enough rows in general, not enough of these.
    rng = np.random.default_rng(seed)
    phi = mr.LogisticMissingness(1.0, [1.5, 0.0], rowwise=True)
    n = int(rng.integers(60, 300))
    X = np.concatenate([rng.normal(0, 1, (2 * n, 2)), rng.normal(1, 1, (n, 2))])
    y = np.repeat([0, 1], [2 * n, n])
    X[y == 0] = mr.corrupt(X[y == 0], phi, rng)
    warnings.simplefilter("ignore", NoPowerWarning)
    for rule in ("auto", "tuned-betting", "thinning", "counting"):
        model = certified(
            LogisticRegression(), missingness={0: phi}, rule=rule, alpha=0.02
        )
        try:
            model.fit(X, y)
        except NoCertificateError as error:
            words = str(error).replace("about ", "")
            if " or more" in words:
                assert int(words.split(" needs ")[1].split()[0]) > n


@pytest.mark.parametrize("phi_max", [0.0, 0.5, 0.8])
def test_so_many_rows_as_are_required_are_certified(phi_max):
    n = mr.classifier.required_calibration_rows(0.1, 0.05, phi_max)
    log_odds = np.log(phi_max / (1 - phi_max)) if phi_max else -np.inf
    phi = mr.LogisticMissingness(log_odds, [0.0], rowwise=True)
    repeats, done = 50, 0
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        X = np.concatenate([rng.normal(0, 1, (2 * n, 1)), rng.normal(2, 1, (n, 1))])
        X[: 2 * n] = mr.corrupt(X[: 2 * n], phi, rng)
        model = certified(
            LogisticRegression(),
            missingness={0: phi} if phi_max else None,
            on_infeasible="reject_all",
            random_state=rng,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoPowerWarning)
            done += model.fit(X, np.repeat([0, 1], [2 * n, n])).certificate_.certified
    assert binomtest(done, repeats, 0.9, "less").pvalue > 0.01


@pytest.mark.parametrize("rule", ["hoeffding-bentkus", "bernstein", "thinning", "auto"])
def test_the_room_that_was_asked_for_is_there(two_normals, rule):
    X, y = two_normals(4000, 2, shift=1.5)
    X[y == 0] = mr.corrupt(X[y == 0], STEP, 0)
    for factor in (1.0, 1.25, 1.5):
        model = certified(
            mr.KLIEP(), missingness={0: STEP}, rule=rule, odds_factor=factor
        ).fit(X, y)
        assert model.certificate_.sensitivity >= factor
