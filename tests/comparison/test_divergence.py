"""Estimated divergences: values known from normal laws, and what is refused."""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from missratio import StepMissingness, corrupt, estimate_divergence
from missratio.exceptions import DataError, SmallSampleWarning

PHI = StepMissingness([1.0], 0.5, 0.6)


def true_divergences(mean, deviation):
    """Of N(mean, deviation²) from N(0, 1)."""

    def mixed(x):
        p1, p0 = norm.pdf(x, mean, deviation), norm.pdf(x)
        return p1 * np.log(2 * p1 / (p1 + p0)) + p0 * np.log(2 * p0 / (p1 + p0))

    return {
        "kl": -np.log(deviation) + (deviation**2 + mean**2) / 2 - 0.5,
        "js": quad(mixed, -9, 9)[0] / 2,
        "pearson": quad(
            lambda x: norm.pdf(x, mean, deviation) ** 2 / norm.pdf(x), -9, 9
        )[0]
        - 1,
    }


@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
@pytest.mark.parametrize("missing", [False, True])
def test_divergences_of_normal_laws(divergence, missing):
    rng = np.random.default_rng(0)
    X1, X0 = rng.normal(0.6, 0.8, (3000, 1)), rng.normal(0, 1, (3000, 1))
    truth = true_divergences(0.6, 0.8)[divergence]
    missingness = {1: PHI} if missing else None
    if missing:
        X1 = corrupt(X1, PHI, random_state=0)
    found = estimate_divergence(
        X1, X0, divergence, missingness=missingness, random_state=0
    )
    assert abs(found.estimate - truth) < 4 * found.standard_error
    assert found.standard_error < 0.2 * truth
    assert found.confidence_interval[0] < found.estimate < found.confidence_interval[1]
    if missing:
        ignored = estimate_divergence(
            X1, X0, divergence, missingness="ignore", random_state=0
        )
        assert abs(ignored.estimate - truth) > 4 * ignored.standard_error


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X + 1e4,
        lambda X: X * 1e-8,
        lambda X: X * 1e3 - 1e6,
        # A column of one value in both samples.
        lambda X: np.c_[X, np.full(len(X), 7.0)],
    ],
)
def test_units_and_a_constant_column_change_nothing(change):
    rng = np.random.default_rng(9)
    X1, X0 = rng.normal(0, 0.6, (300, 1)), rng.normal(0, 1, (300, 1))
    one = estimate_divergence(X1, X0, random_state=0)
    two = estimate_divergence(change(X1), change(X0), random_state=0)
    assert one.estimate == pytest.approx(two.estimate, rel=1e-4)


def test_equal_laws_have_no_divergence():
    rng = np.random.default_rng(2)
    X1, X0 = rng.normal(size=(2, 500, 2))
    found = estimate_divergence(X1, X0, "js", random_state=0)
    assert abs(found.estimate) < 0.02


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, {"divergence": "hellinger"}, "one of"),
        (None, {"confidence": 1.0}, "confidence"),
        (None, {"confidence": np.nan}, "confidence"),
        (lambda X1, X0: (X1[:3], X0), {}, "cv=5"),
        (lambda X1, X0: (X1[:, 0], X0), {}, r"X1 must be two-dim.*got shape \(40,\)"),
        (lambda X1, X0: (X1, X0[:0]), {}, "X0 has 0 complete row"),
    ],
)
def test_what_is_refused(change, options, message):
    samples = np.random.default_rng(4).normal(size=(2, 40, 1))
    with pytest.raises(ValueError, match=message):
        estimate_divergence(*(change(*samples) if change else samples), **options)


@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
@pytest.mark.parametrize("swapped", [False, True])
def test_columns_without_a_common_value_are_refused(divergence, swapped):
    rng = np.random.default_rng(5)
    X1, X0 = np.c_[rng.normal(size=20), np.ones(20)], rng.normal(size=(20, 2))
    X1, X0 = (X0, X1) if swapped else (X1, X0)
    with pytest.raises(DataError, match="'x1' have one value") as caught:
        estimate_divergence(X1, X0, divergence, random_state=0)
    assert caught.value.message.columns == (1,)
    with pytest.raises(DataError, match="'x0' have one value"):
        estimate_divergence(np.ones((20, 1)), np.zeros((20, 1)), divergence)


def test_a_value_that_only_the_numerator_has_makes_kl_infinite():
    rng = np.random.default_rng(6)
    X1 = np.c_[rng.normal(size=400), rng.integers(0, 2, 400)]
    X0 = np.c_[rng.normal(size=400), np.zeros(400)]
    for divergence in ("kl", "pearson"):
        with pytest.raises(DataError, match="infinite"):
            estimate_divergence(X1, X0, divergence, random_state=0)
    # Jensen and Shannon's is that of a fair coin and a zero.
    truth = (0.5 * np.log(2) + 0.5 * np.log(2 / 3) + np.log(4 / 3)) / 2
    found = estimate_divergence(X1, X0, "js", random_state=0)
    assert abs(found.estimate - truth) < 4 * found.standard_error < 0.1
    # The other way round KL is finite: the log of two.
    found = estimate_divergence(X0, X1, "kl", random_state=0)
    assert abs(found.estimate - np.log(2)) < 4 * found.standard_error < 0.3


def test_samples_that_do_not_overlap():
    rng = np.random.default_rng(8)
    X1, X0 = rng.normal(8, 1, (50, 1)), rng.normal(0, 1, (50, 1))
    for divergence in ("kl", "pearson"):
        with pytest.raises(DataError, match="without error"):
            estimate_divergence(X1, X0, divergence, random_state=0)
    with pytest.warns(SmallSampleWarning, match="too short"):
        found = estimate_divergence(X1, X0, "js", random_state=0)
    assert found.estimate == pytest.approx(np.log(2), abs=0.01)


def test_an_interval_that_a_few_rows_decide_is_said():
    said = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X1, X0 = rng.normal(1, 1, (500, 1)), rng.normal(0, 1, (500, 1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimate_divergence(X1, X0, "pearson", random_state=0)
        said += any(issubclass(w.category, SmallSampleWarning) for w in caught)
        estimate_divergence(X1, X0, "js", random_state=0)
        # Where the ratio is bounded nothing is said.
        estimate_divergence(0.7 * (X1 - 1), X0, "pearson", random_state=0)
    assert said >= 8


def test_a_divergence_that_held_out_rows_of_long_tails_carry_is_said_to_be_so():
    rng = np.random.default_rng(0)
    X1, X0 = rng.standard_t(2, (1500, 3)) + 0.5, rng.standard_t(2, (1500, 3))
    with pytest.warns(SmallSampleWarning, match="effective rows of X0"):
        estimate_divergence(X1, X0, "kl", random_state=0)


@pytest.mark.filterwarnings("ignore::missratio.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("law", ["laplace", "correlated"])
def test_a_difference_that_means_and_spreads_do_not_show_is_covered(law):
    """Laplace's law against a normal one, and a correlation: equal squares."""
    covariance = np.array([[1.0, 0.6], [0.6, 1.0]])
    truth = -np.log(1 - 0.6**2) / 2
    if law == "laplace":
        truth = np.log(np.sqrt(2 * np.pi) / 1.4) - 1 + 0.7**2
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X1, X0 = rng.laplace(0, 0.7, (600, 1)), rng.normal(size=(600, 1))
        if law == "correlated":
            X1 = rng.multivariate_normal([0, 0], covariance, 600)
            X0 = rng.normal(size=(600, 2))
        low, high = estimate_divergence(X1, X0, random_state=0).confidence_interval
        held += 0.0 < low < truth < high if law == "correlated" else low < truth < high
    # At a coverage of 95% fewer than 16 come once in 380 times (binomial); blind, 0.
    assert held >= 16
