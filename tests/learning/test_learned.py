"""A learned φ: its errors and its band."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from classifiers import certified
from data import looked_up, lost_and_looked_up, separated
from optional_packages import optional
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import NoCertificateError
from missratio.learning import Check, LearnedMissingness, MissingnessWarning
from missratio.learning.checks import concluded

pd = optional("pandas")
GRID = np.linspace(-3.0, 3.0, 13)[:, None]


def learn(method="firth", rowwise=False, **options):
    X, revealed, _ = lost_and_looked_up(**{"d": 1, "rowwise": rowwise, **options})
    return mr.learn_missingness(X, revealed, method, rowwise=rowwise, from_table=False)


MODELS = {
    "one": learn(),
    "three": learn(d=3),
    "rows": learn(d=3, rowwise=True),
    "separated": mr.learn_missingness(*separated()),
    "ml": learn(method="ml"),
}


def points(model, n=20, seed=0):
    return np.random.default_rng(seed).normal(0.0, 1.5, (n, model.n_features))


# The band


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.5])
def test_the_band_holds_the_estimate(name, delta):
    model = MODELS[name]
    X = points(model)
    lower, upper = model.probability_band(X, delta)
    estimate, _ = model.probability_band(X, None)
    assert lower.shape == upper.shape == estimate.shape
    assert (lower >= 0.0).all()
    assert (upper <= 1.0).all()
    assert (lower <= estimate + 1e-4).all()
    assert (estimate <= upper + 1e-4).all()
    if name != "separated":
        assert (lower < upper).all()


@pytest.mark.parametrize("name", MODELS)
def test_bands_are_nested_in_delta(name):
    model = MODELS[name]
    X = points(model)
    wide = model.probability_band(X, 0.001)
    for delta in (0.01, 0.1, 0.4, 0.8):
        narrow = model.probability_band(X, delta)
        assert (wide[0] <= narrow[0] + 1e-4).all()
        assert (narrow[1] <= wide[1] + 1e-4).all()
        wide = narrow


@pytest.mark.parametrize("rowwise", [False, True])
def test_nothing_is_known_where_a_value_is_missing(rowwise):
    model = learn(d=2, rowwise=rowwise)
    X = np.array([[0.0, np.nan], [0.5, 1.0], [np.nan, np.nan]])
    known = [False, True, False] if rowwise else ~np.isnan(X)
    for edge in model.probability_band(X):
        assert (~np.isnan(edge) == known).all()


def test_it_may_be_asked_where_phi_rounds_to_one():
    model = MODELS["separated"]
    lower, upper = model.probability_band([[1000.0], [-1000.0]])
    assert upper[0, 0] == 1.0
    assert lower[1, 0] == 0.0
    assert model.probability_band([[1000.0]], None)[0][0, 0] == 1.0
    with pytest.raises(ValueError, match="rounds to 1"):
        model.missing_probability([[1000.0]])


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan")])
def test_levels_are_probabilities(delta):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        MODELS["one"].probability_band([[0.0]], delta)


# Errors


def test_the_errors_are_those_seen_in_repeats():
    # 400 repeats, as features of one table.
    model = learn(n=500, d=400, m=50, seed=5)
    for k, estimates in enumerate((model.intercept, model.coef)):
        seen = estimates.std()
        stated = np.sqrt((model.standard_errors[:, k] ** 2).mean())
        assert stated == pytest.approx(seen, rel=4 * (2 * 400) ** -0.5)


def test_with_all_revealed_the_covariance_is_fishers():
    X, revealed, Z = lost_and_looked_up(300, 1, 300)
    model = mr.learn_missingness(X, revealed, method="ml")
    p = model.missing_probability(Z)[:, 0]
    design = np.hstack([np.ones_like(Z), Z])
    information = (design.T * p * (1 - p)) @ design
    assert model.covariance[0] == pytest.approx(np.linalg.inv(information), rel=1e-6)


# As an object


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_is_as_good(name, copied):
    model = MODELS[name]
    X = points(model)
    before = model.probability_band(X)
    twin = copied(model)
    assert type(twin) is LearnedMissingness
    assert (twin.probability_band(X)[1] == before[1]).all()
    assert (twin.standard_errors == model.standard_errors).all()
    assert twin.feature_names == model.feature_names
    assert twin.method == model.method


def test_regions_are_not_in_the_pickle():
    model = learn()
    size = len(pickle.dumps(model))
    model.probability_band(GRID)
    assert len(pickle.dumps(model)) == size


@pytest.mark.parametrize("method", ["firth", "ml"])
def test_values_may_be_of_any_scale_and_far_from_the_origin(method):
    rng = np.random.default_rng(0)
    Z = 1e9 + 100.0 * rng.normal(size=(400, 1))
    X = np.where(rng.uniform(size=Z.shape) < 0.4, np.nan, Z)
    revealed = looked_up(X, Z, 40, rng)
    far = mr.learn_missingness(X, revealed, method)
    X, revealed, rows = ((each - 1e9) / 100.0 for each in (X, revealed, Z))
    near = mr.learn_missingness(X, revealed, method)
    assert 100.0 * far.coef == pytest.approx(near.coef, rel=1e-4)
    bands = near.probability_band(rows), far.probability_band(Z)
    for here, there in zip(*bands, strict=True):
        assert there == pytest.approx(here, abs=1e-4)


@pytest.mark.parametrize("pvalue", [0.4, 0.02, 0.001])
def test_a_doubtful_test_does_not_say_that_data_agree(pvalue):
    bad = "x0: the values contradict it."
    found = Check("form", "x0", "table", 9.0, pvalue, False, bad, 1.5)
    other = Check("agreement", "x0", "table", 1.0, 0.9, False, bad, 1.0)
    check, _ = concluded([found, other])
    assert check.failed == (pvalue == 0.001)
    assert ("agree" in check.sentence) == (pvalue == 0.4)
    assert ("doubtful" in check.sentence) == (pvalue == 0.02)
    assert ("Don't weight" in check.sentence) == check.failed


def test_a_phi_that_leaves_too_much_open_is_refused_before_any_fit():
    class NeverFitted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("the estimator was fitted")

    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 10))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    y = np.repeat([0, 1], 400)
    with warnings.catch_warnings(action="ignore"):
        learned = {k: mr.learn_missingness(X[y == k]) for k in (0, 1)}
    classifier = certified(NeverFitted(), missingness=learned, delta=0.05)
    with pytest.raises(
        NoCertificateError, match=r"open.*stand for (any number of|[\d,]+) rows.*allow"
    ):
        classifier.fit(X, y)


# Rows move a learned φ by as much as its covariance says.


def learned(n, rowwise, revealed_share, seed=0):
    slopes = np.array([1.0, -1.0])
    X, whole, _ = lost_and_looked_up(n, 2, n, seed, rowwise, slopes)
    known = np.random.default_rng(seed).random((n, 1)) < revealed_share
    with warnings.catch_warnings(action="ignore", category=MissingnessWarning):
        # Of so many tables a test may call one wrong.
        model = mr.learn_missingness(
            X, np.where(known, whole, np.nan), rowwise=rowwise, from_table=False
        )
    return model, X


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("revealed_share", [0.05, 0.5, 1.0])
def test_movements_of_all_rows_add_up_to_the_covariance(rowwise, revealed_share):
    model, _ = learned(30_000, rowwise, revealed_share)
    share, _, variance = model.influence()
    expected = model.covariance.reshape(variance.shape)
    np.testing.assert_allclose(variance, expected, rtol=0.1, atol=0.03 * expected.max())
    np.testing.assert_allclose(share, revealed_share, rtol=0.15)


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("revealed_share", [0.2, 1.0])
def test_their_sum_is_a_covariance_with_a_handful_of_rows(rowwise, revealed_share):
    for seed in range(20):
        model, _ = learned(150, rowwise, revealed_share, seed)
        values = np.linalg.eigvalsh(model.influence()[2])
        assert (values > 0.0).all()


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("n", [500, 40_000])
def test_a_model_knows_the_rows_that_it_was_learned_from(rowwise, n):
    model, X = learned(n, rowwise, 0.5)
    _, others = learned(n, rowwise, 0.5, seed=1)
    assert model.was_learned_from(X)
    assert model.was_learned_from(pd.DataFrame(X))
    assert not model.was_learned_from(X[:-1])
    assert not model.was_learned_from(X + 1e-6)
    assert not model.was_learned_from(others)
