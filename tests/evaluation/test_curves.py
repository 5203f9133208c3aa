"""The NP-ROC: monotone, certified, and within its band."""

import numpy as np
import pytest
from classifiers import certified
from scipy.special import ndtr, ndtri
from scipy.stats import binom, binomtest

import missratio as mr
from missratio import np_roc
from missratio.evaluation import compare_np_roc
from missratio.threshold import CalibrationSample

LEVELS = np.linspace(0.01, 0.5, 60)


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, 1000), rng.normal(1.5, 1, 800)


@pytest.mark.parametrize("rule", ["thinning", "bernstein"])
def test_more_error_is_more_power_where_rows_are_missing(scores, rule):
    # Calibration scores above 0 are lost half of the time.
    controlled, other = scores
    lost = np.random.default_rng(1).uniform(size=1000) < 0.5 * (controlled > 0)
    options = {"weights": np.where(lost, 0.0, 1.0 + (controlled > 0)), "bound": 2.0}
    seen = np.where(lost, np.nan, controlled)
    roc = np_roc(seen, other, alphas=LEVELS, rule=rule, **options)
    assert (np.diff(roc.power) >= 0).all()
    assert set(roc.rule) == {rule}


def test_the_band_is_exact_and_contains_the_power(scores):
    controlled, other = scores
    roc = np_roc(controlled, other, alphas=LEVELS, delta=0.1)
    assert (roc.lower <= roc.power).all()
    assert (roc.power <= roc.upper).all()
    for i in range(0, len(LEVELS), 7):
        above = int((other > roc.threshold[i]).sum())
        assert roc.power[i] == above / len(other)
        exact = binomtest(above, len(other)).proportion_ci(0.9, method="exact")
        assert roc.lower[i] == pytest.approx(exact.low)
        assert roc.upper[i] == pytest.approx(exact.high)


def test_the_band_covers_the_true_power_of_the_threshold():
    rng, missed = np.random.default_rng(3), 0
    for _ in range(300):
        scores = rng.normal(size=200), rng.normal(1.5, 1, 200)
        roc = np_roc(*scores, alphas=[0.2], delta=0.2)
        missed += not roc.lower[0] <= ndtr(1.5 - roc.threshold[0]) <= roc.upper[0]
    assert binom.sf(missed - 1, 300, 0.2) > 1e-3


def test_what_nothing_certifies_and_rows_at_the_threshold_have_no_power(scores):
    controlled, other = scores
    roc = np_roc(controlled[:50], other, alphas=[0.01, 0.3])
    assert roc.threshold[0] == np.inf
    assert roc.power[0] == roc.lower[0] == 0.0
    assert roc.power[1] > 0.2
    roc = np_roc(np.zeros(100), np.array([0.0, 0.0, 1.0]), alphas=[0.2])
    assert roc.threshold[0] == 0.0
    assert roc.power[0] == pytest.approx(1 / 3)
    nothing = {"weights": np.zeros(1000), "bound": 2.0, "rule": "betting"}
    roc = np_roc(np.full(1000, np.nan), [1.0], alphas=[0.2], **nothing)
    assert roc.power[0] == 0.0


@pytest.mark.needs("pandas")
def test_the_curve_is_a_table_too(scores):
    roc = np_roc(*scores, alphas=[0.1, 0.2])
    for backend in ("pandas", "polars"):
        frame = roc.to_frame(backend)
        names = ["alpha", "threshold", "power", "lower", "upper", "rule"]
        assert list(frame.columns) == names
        assert frame.shape == (2, 6)
        assert frame["power"].to_list() == roc.power.tolist()


def gaussian_rows(seed, n_rows=600):
    """Two classes in the plane that the first column alone tells apart."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 2)), rng.normal([1.5, 0.0], 1.0, (n_rows, 2))


def test_of_two_classifiers_the_better_is_found(scores):
    controlled, other = scores
    good = np_roc(controlled, other + 1.0, alphas=LEVELS, name="good")
    bad = np_roc(controlled, other - 1.0, alphas=LEVELS, name="bad")
    found = compare_np_roc(good, bad)
    truth = ndtr(2.5 + ndtri(LEVELS)) - ndtr(0.5 + ndtri(LEVELS))
    assert np.abs(found.difference - truth).max() < 0.1
    assert ((found.low < found.difference) & (found.difference < found.high)).all()
    assert found.a_better[5:].all()
    assert not found.b_better.any()
    swapped = compare_np_roc(bad, good)
    np.testing.assert_array_equal(swapped.b_better, found.a_better)
    same = compare_np_roc(good, good)
    assert not same.a_better.any()
    assert not same.b_better.any()


def test_sorted_scores_are_not_taken_for_scores_of_the_same_rows():
    # Sorted, the two curves would seem to have nearly everything in common.
    rows = gaussian_rows(0)
    one, two = (
        [np.sort(each @ direction) for each in rows] for direction in ([1, 1], [1, -1])
    )
    options = {"alphas": [0.1]}
    ordered = compare_np_roc(np_roc(*one, **options), np_roc(*two, **options))
    mixed = np.random.default_rng(0).permutation(len(one[0]))
    shuffled = np_roc(*(each[mixed] for each in one), **options)
    apart = compare_np_roc(shuffled, np_roc(*two, **options))
    assert ordered.high - ordered.low > 0.8 * (apart.high - apart.low)


def test_a_handful_of_rows_tells_nothing():
    rows = gaussian_rows(0, 60)
    scores = ([each[:, j] for each in rows] for j in (0, 1))
    found = compare_np_roc(*(np_roc(*both, alphas=[0.05, 0.3]) for both in scores))
    assert (found.low[0], found.high[0]) == (-1.0, 1.0)
    assert found.a_better.tolist() == [False, True]


@pytest.mark.parametrize(
    ("other", "message"),
    [({"delta": 0.2}, "same delta"), ({"alphas": [0.2]}, "same levels")],
)
def test_curves_of_other_levels_are_not_compared(scores, other, message):
    options = {"alphas": [0.1], "delta": 0.1}
    curves = [np_roc(*scores, **each) for each in (options, options | other)]
    with pytest.raises(ValueError, match=message):
        compare_np_roc(*curves)


OWN = CalibrationSample.build([1.0], [1.0], 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": [0.0, 0.1]}, "alpha must lie"),
        ({"alphas": [1.0]}, "alpha must lie"),
        ({"delta": 0.0}, "delta must lie"),
        ({"delta": 1.0}, "delta must lie"),
        ({"rule": "best"}, "rule must be one of"),
        ({"weights": np.full(1000, 3.0), "bound": 2.0}, "exceeds the bound"),
        ({"other_scores": []}, "other_scores must hold"),
        ({"controlled_scores": [0.0, np.nan]}, "score of NaN"),
        ({"controlled_scores": OWN, "weights": [1.0]}, "its own weights"),
    ],
)
def test_bad_options_are_refused(scores, options, message):
    given = {"controlled_scores": scores[0], "other_scores": scores[1], **options}
    with pytest.raises(ValueError, match=message):
        np_roc(**given)


@pytest.mark.parametrize("odds_factor", [1.0, 1.5])
def test_a_classifiers_own_sample_gives_its_own_threshold(two_normals, odds_factor):
    X, y = two_normals(2000, 2, shift=1.5)
    phi = mr.LogisticMissingness(-0.5, [-1.0, 0.0], rowwise=True)
    X[y == 0] = mr.corrupt(X[y == 0], phi, 0)
    options = {"rule": "bernstein", "odds_factor": odds_factor, "delta": 0.05}
    model = certified(mr.KLIEP(), missingness={0: phi}, **options).fit(X, y)
    sample = model.calibration_sample(X[model.calibration_index_])
    roc = mr.np_roc(sample, [0.0, 1.0], alphas=[0.1], rule="bernstein")
    assert roc.threshold[0] == pytest.approx(model.threshold_, rel=1e-5)
