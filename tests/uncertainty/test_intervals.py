"""Intervals follow from the covariance, and wrong rows are refused."""

import warnings

import numpy as np
import pytest
import ratio_coverage
from optional_packages import optional
from ratio_coverage import Setting
from scipy.stats import t
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.exceptions import NoFiniteOptimumWarning
from missratio.ratio import stack_samples
from missratio.uncertainty import UnreliableIntervalWarning

pd = optional("pandas")
pl = optional("polars")


@pytest.fixture
def fitted(two_normals):
    X, y = two_normals(200, 2)
    return mr.KLIEP().fit(X, y), X, y


def test_the_standard_error_of_a_log_ratio_is_that_of_its_linear_form(fitted):
    ratio, X, y = fitted
    uncertainty = mr.ratio_uncertainty(ratio, X, y)
    form = np.column_stack([X[:5], -np.ones(5)])
    expected = np.sqrt(np.einsum("ij,jk,ik->i", form, uncertainty.covariance, form))
    estimate, error = uncertainty.log_ratio(X[:5])
    np.testing.assert_allclose(error, expected)
    np.testing.assert_allclose(estimate, ratio.predict_log_ratio(X[:5]))
    lower, upper = uncertainty.interval(X[:5], level=0.9)
    reach = (upper - lower) / (2 * expected)
    # Student's quantile: the normal one, and more the fewer rows decide.
    degrees = uncertainty.degrees_of_freedom
    assert (reach > 1.6448536).all()
    assert (reach <= t.ppf(0.95, degrees.min())).all()


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_the_summary_has_a_row_for_each_feature(fitted, backend):
    ratio, X, y = fitted
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[backend]
    uncertainty = mr.ratio_uncertainty(ratio, X, y)
    frame = uncertainty.summary_frame(level=0.9, backend=backend)
    assert isinstance(frame, kind)
    assert list(frame["feature"]) == ["x0", "x1"]
    error = uncertainty.standard_errors[:2]
    np.testing.assert_allclose(frame["standard_error"], error)
    np.testing.assert_allclose(frame["z"], ratio.coef_ / error)
    reach = t.ppf(0.95, uncertainty.degrees_of_freedom[:2]) * error
    np.testing.assert_allclose(frame["upper"], ratio.coef_ + reach)
    assert list(frame["reliable"]) == [True, True]


@pytest.mark.filterwarnings("ignore::missratio.uncertainty.UnreliableIntervalWarning")
def test_names_of_columns_are_kept_and_nan_gives_nan(two_normals):
    X, y = two_normals(300, 2)
    frame = pd.DataFrame(X, columns=["age", "dose"])
    phi = mr.LogisticMissingness([-1.0, -np.inf], [1.0, 0.0])
    frame[y == 1] = mr.corrupt(X[y == 1], phi, 0)
    estimator = mr.KLIEP("polynomial", missingness={1: phi}, l2=0.01)
    for ratio in (estimator, mr.NaiveBayesRatio(estimator)):
        uncertainty = mr.ratio_uncertainty(ratio.fit(frame, y), frame, y)
        features = uncertainty.summary_frame()["feature"]
        assert len(features) == len(ratio.coef_)
        assert features[0] == "age"
        lower, _ = uncertainty.interval(frame)
        assert (np.isnan(lower) == frame.isna().any(axis=1)).all()


def test_the_order_of_rows_and_the_units_of_columns_change_nothing(fitted):
    ratio, X, y = fitted
    before = mr.ratio_uncertainty(ratio, X, y)
    order = np.random.default_rng(0).permutation(len(y))
    scale = np.array([100.0, 0.01])
    moved = X[order] * scale + 5.0
    after = mr.ratio_uncertainty(mr.KLIEP().fit(moved, y[order]), moved, y[order])
    np.testing.assert_allclose(
        after.standard_errors[:2] * scale, before.standard_errors[:2], rtol=1e-5
    )
    np.testing.assert_allclose(
        after.log_ratio(moved)[1], before.log_ratio(X[order])[1], rtol=1e-5
    )


def test_what_gives_no_interval_is_refused(fitted):
    ratio, X, y = fitted
    for given, message in (
        ((ratio, X[::-1], y), "not the rows"),
        ((ratio, X, y, 1.0 + X[:, 0] ** 2), "sample_weight where it had any"),
        ((LogisticRegression().fit(X, y), X, y), "KLIEP, FDivergenceRatio.*bootstrap"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            mr.ratio_uncertainty(*given)
    with pytest.raises(ValueError, match="level must lie strictly between"):
        mr.ratio_uncertainty(ratio, X, y).interval(X, level=95)


def test_without_an_optimum_there_is_no_standard_error():
    X, y = np.array([[0.0], [1.0], [2.0], [5.0], [6.0]]), np.array([0, 0, 0, 1, 1])
    with pytest.warns(NoFiniteOptimumWarning):
        ratio = mr.KLIEP().fit(X, y)
    with pytest.raises(ValueError, match="did not converge"):
        mr.ratio_uncertainty(ratio, X, y)


def test_a_phi_learned_from_all_missing_values_gives_less_variance_than_a_known_one():
    setting = Setting("entries", 0.5, queried=10_000, n_rows=4000)
    rng = np.random.default_rng(0)
    data = ratio_coverage.draw(setting, rng)
    models = ratio_coverage.learn(setting, data)
    ratio = setting.make(models).fit(data.X, data.y)
    included = ratio_coverage.standard_errors(ratio, data)
    known = setting.make(ratio_coverage.as_if_known(models))
    left_out = ratio_coverage.standard_errors(known.fit(data.X, data.y), data)
    assert (included[:2] < 0.95 * left_out[:2]).all()


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
@pytest.mark.parametrize(
    ("losing", "queried"), [("entries", None), ("entries", 20), ("rows", 20)]
)
def test_intervals_hold_the_truth_about_as_often_as_they_say(losing, queried):
    setting = Setting(losing, 0.5, queried, n_rows=400)
    outcome = ratio_coverage.simulate(setting, repeats=100)
    # Three binomial standard deviations are 0.065.
    assert outcome.coverage()[:2].min() > 0.88
    assert outcome.coverage()[3:].min() > 0.88


def test_without_the_error_of_phi_intervals_are_too_short():
    outcome = ratio_coverage.simulate(Setting("entries", 0.5, 10), repeats=60)
    assert outcome.coverage(outcome.left_out)[3:].max() < 0.8
    assert (outcome.left_out < outcome.included).mean() > 0.99


def test_where_a_few_rows_decide_it_is_said():
    rng = np.random.default_rng(0)
    phi = mr.LogisticMissingness(1.0, [3.0])
    X1 = mr.corrupt(rng.normal(0.5, 1, (1000, 1)), phi, rng)
    X, y = stack_samples(X1, rng.normal(size=(1000, 1)))
    ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
    with pytest.warns(UnreliableIntervalWarning, match="'x0': a few rows") as caught:
        uncertainty = mr.ratio_uncertainty(ratio, X, y)
    assert caught[0].filename == __file__
    assert uncertainty.degrees_of_freedom[0] < 30
    assert not uncertainty.reliable[0]
    # The fewer degrees of freedom, the longer the interval for its standard error.
    (row,) = uncertainty.summary_frame().to_dict("records")
    assert row["upper"] - row["coefficient"] > 2.1 * row["standard_error"]


def test_what_the_penalty_made_up_has_no_interval():
    # Column 1 is an indicator that is missing in class 0 wherever it would be one.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 2)), np.repeat([0, 1], 1000)
    X[:, 1] = rng.random(2000) < 0.3
    X[(y == 0) & (X[:, 1] == 1), 1] = np.nan
    phi = mr.LogisticMissingness([-np.inf, -1.0], [0.0, 3.0])
    ratio = mr.KLIEP(l2=0.1, missingness={0: phi}).fit(X, y)
    assert abs(ratio.coef_[1]) > 1
    with pytest.warns(UnreliableIntervalWarning, match=r"'x1'.*made the coef"):
        uncertainty = mr.ratio_uncertainty(ratio, X, y)
    assert uncertainty.undetermined == {1: 0.0}
    frame = uncertainty.summary_frame()
    assert np.isnan(frame[["standard_error", "z", "lower", "upper"]].loc[1]).all()
    assert frame["reliable"].tolist() == [True, False]
    estimate, error = uncertainty.log_ratio([[0.5, 0.0], [0.5, 1.0]])
    assert np.isfinite(estimate).all()
    assert np.isnan(error).tolist() == [False, True]


def test_a_cross_validated_ratio_has_intervals_too():
    # Given the penalty that was chosen; here it is next to none, and so is its bias.
    rng = np.random.default_rng(0)
    setting = Setting("entries", 0.4, None, n_rows=500, slope=0.5)
    misses = []
    for _ in range(240):
        data = ratio_coverage.draw(setting, rng)
        models = ratio_coverage.learn(setting, data)
        ratio = mr.KLIEPCV(missingness=models, l2_grid=[1e-4], cv=2, random_state=0)
        error = ratio_coverage.estimates(ratio.fit(data.X, data.y)) - setting.truth
        found = ratio_coverage.standard_errors(ratio, data)
        misses.append(np.abs(error) > 1.96 * found)
    # Three binomial standard deviations are 0.042.
    assert np.mean(misses, axis=0).max() < 0.092
    # Regression narrows them.
    setting = Setting("entries", 0.5, None, n_rows=4000, slope=0.5)
    data = ratio_coverage.draw(setting, np.random.default_rng(0))
    options = {"missingness": ratio_coverage.learn(setting, data), "l2": 1e-4}
    ours, theirs = (
        ratio_coverage.standard_errors(ratio.fit(data.X, data.y), data)
        for ratio in (mr.KLIEP(normalize="regression", **options), mr.KLIEP(**options))
    )
    assert (ours[:2] < 0.98 * theirs[:2]).all()


def test_an_adjusted_ratio_with_a_learned_phi_is_referred_to_another_divisor():
    setting = Setting("entries", 0.4, 10, n_rows=500, slope=0.5)
    data = ratio_coverage.draw(setting, np.random.default_rng(0))
    models = ratio_coverage.learn(setting, data)
    ratio = mr.KLIEPCV(missingness=models, random_state=0).fit(data.X, data.y)
    with pytest.raises(ValueError, match=r"learned φ.*normalize='hajek'"):
        mr.ratio_uncertainty(ratio, data.X, data.y)
    ratio.set_params(normalize="hajek").fit(data.X, data.y)
    assert mr.ratio_uncertainty(ratio, data.X, data.y).standard_errors.all()


# Intervals are reliable unless rows that were hardly to be seen would decide.


def called_reliable(phi, seed, n_rows=1000):
    """Both classes gamma, the ratio log-linear; class 1 loses values."""
    rng = np.random.default_rng(seed)
    Z = rng.gamma(2.0, np.repeat([1.0, 0.7], n_rows))[:, None]
    X, y = stack_samples(mr.corrupt(Z[:n_rows], phi, rng), Z[n_rows:])
    with warnings.catch_warnings(action="ignore"):
        ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
        return mr.ratio_uncertainty(ratio, X, y).reliable.all()


NEVER_MISSING = mr.FunctionMissingness(lambda X: 0.5 * (X > 3.0), rowwise=False)
BELOW = mr.FunctionMissingness(
    lambda X: 0.95 / (1.0 + np.exp(2.0 - X)), rowwise=False, maximum=0.95
)


@pytest.mark.parametrize(
    ("phi", "least"),
    [
        (mr.LogisticMissingness(-2.0, [0.3]), 6),
        (NEVER_MISSING, 6),
        (mr.StepMissingness(direction=1.0, threshold=1.5, probability=0.9), 9),
        (mr.StepMissingness(direction=1.0, threshold=3.0, probability=0.9), 9),
        (BELOW, 9),
    ],
    ids=["light tail", "often never missing", "step", "rare step", "below .95"],
)
def test_a_light_tail_or_a_bound_on_weights_is_enough(phi, least):
    seeds = range(6 if least == 6 else 10)
    assert sum(called_reliable(phi, seed) for seed in seeds) >= least


@pytest.mark.parametrize(
    "phi",
    [
        # The weights' second moment is infinite; the log-odds are far from normal.
        *(mr.LogisticMissingness(-2.0, [1.0], rowwise) for rowwise in (False, True)),
        # Seven rows of a thousand lie beyond it, and a third of a row is observed.
        mr.StepMissingness(direction=1.0, threshold=7.0, probability=0.95),
    ],
)
def test_a_heavy_tail_is_not_reliable_whatever_was_seen(phi):
    """Samples without a heavy row look harmless, and are the ones that are wrong."""
    assert not any(called_reliable(phi, seed) for seed in range(12))
