"""What can be seen to be wrong is said; what is right is not disturbed."""

import time
import warnings

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import (
    NoCertificateError,
    NoPowerWarning,
    RepeatedRowsWarning,
)

STEP = mr.StepMissingness([1.0, 0.0], 0.0, 0.8)


def certified(estimator, **options):
    return mr.NeymanPearsonClassifier(
        estimator, **{"alpha": 0.1, "delta": 0.05, "random_state": 0, **options}
    )


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


def test_rows_that_repeat_by_chance_are_no_cause_for_alarm(two_normals):
    X, y = two_normals(300, 2, shift=1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certified(mr.KLIEP()).fit(X, y)
        certified(mr.KLIEP()).fit(np.rint(X), y)


@pytest.mark.parametrize("rule", ["auto", "flipped-betting", "betting", "paper"])
def test_that_no_number_of_rows_is_enough_is_said_within_a_second(rule):
    start = time.perf_counter()
    with pytest.raises(NoCertificateError, match="No number of rows up to 1e"):
        mr.required_calibration_rows(1e-9, 0.01, 0.999, rule)
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
    n = mr.required_calibration_rows(0.1, 0.05, phi_max)
    log_odds = np.log(phi_max / (1 - phi_max)) if phi_max else -np.inf
    phi = mr.LogisticMissingness(log_odds, [0.0], rowwise=True)
    repeats, done = 100, 0
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
