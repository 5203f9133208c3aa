"""KLIEP, M-KLIEP and CC-KLIEP: what the paper says of them."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missratio as mr
from missratio.exceptions import SmallSampleWarning, WeightConcentrationWarning
from missratio.weights import inverse_probability_weights

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = mr.LogisticMissingness([-0.5, 0.0], [1.0, -1.0])
MODELS = [None, ROWS, ENTRIES]


def samples(n=400, seed=0, d=2, shift=0.3):
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 1, (n, d)), rng.normal(size=(n, d))


def lossy(model, n=400, seed=0):
    X1, X0 = samples(n, seed)
    return mr.corrupt(X1, model, seed), X0


def tilted_mean(ratio, X0, weights=None):
    mass = ratio.predict_ratio(X0)
    return np.average(X0, axis=0, weights=mass if weights is None else mass * weights)


# What no missingness, or missingness that says nothing, does.


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
@pytest.mark.parametrize(
    "never",
    [
        mr.StepMissingness([1.0, 1.0], 0.0, 0.0),
        mr.LogisticMissingness(-np.inf, 0.0),
        mr.FunctionMissingness(lambda X: np.zeros(len(X))),
    ],
    ids=["rows", "entries", "function"],
)
def test_without_missingness_m_kliep_is_kliep(never, normalize):
    X1, X0 = samples()
    plain = mr.density_ratio(X1, X0)
    both = mr.KLIEP(missingness={0: never, 1: never}, normalize=normalize)
    weighted = mr.density_ratio(X1, X0, both)
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-9)
    assert weighted.log_normalizer_ == pytest.approx(plain.log_normalizer_)


@pytest.mark.parametrize(
    "constant",
    [
        mr.FunctionMissingness(lambda X: np.full(len(X), 0.4)),
        mr.LogisticMissingness(0.5, 0.0),
    ],
    ids=["rows", "entries"],
)
@pytest.mark.parametrize("sides", [(1,), (0,), (0, 1)])
def test_constant_missingness_is_complete_case_under_hajek(constant, sides):
    tables = dict(zip((1, 0), samples(), strict=True))
    for label in sides:
        tables[label] = mr.corrupt(tables[label], constant, 10 + label)
    X1, X0 = tables[1], tables[0]
    known = mr.KLIEP(missingness=dict.fromkeys(sides, constant))
    weighted = mr.density_ratio(X1, X0, known)
    complete_case = mr.density_ratio(X1, X0, mr.KLIEP(missingness="ignore"))
    np.testing.assert_allclose(weighted.coef_, complete_case.coef_, atol=1e-8)
    assert weighted.log_normalizer_ == pytest.approx(complete_case.log_normalizer_)


@pytest.mark.parametrize("model", [ROWS, ENTRIES], ids=["rows", "entries"])
def test_complete_case_takes_each_features_observed_entries(model):
    X1, X0 = lossy(model)
    ratio = mr.density_ratio(X1, X0, mr.KLIEP(missingness="ignore"))
    np.testing.assert_allclose(
        tilted_mean(ratio, X0), np.nanmean(X1, axis=0), atol=1e-7
    )


# At the optimum moments match.


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
def test_the_tilted_denominator_has_the_numerators_weighted_mean(model, normalize):
    X1, X0 = samples() if model is None else lossy(model)
    ratio = mr.density_ratio(
        X1, X0, mr.KLIEP(missingness={1: model}, normalize=normalize)
    )
    weights = inverse_probability_weights(X1, model)
    weights = np.broadcast_to(weights.reshape(len(X1), -1), X1.shape)
    sums = (weights * np.nan_to_num(X1)).sum(axis=0)
    divisor = weights.sum(axis=0) if normalize == "hajek" else len(X1)
    np.testing.assert_allclose(tilted_mean(ratio, X0), sums / divisor, atol=1e-7)


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_ratio_averages_to_one_over_the_denominator(model, normalize, l2):
    X1, X0 = samples()
    estimator = mr.KLIEP(normalize=normalize, l2=l2, direction="forward")
    weights = np.ones(len(X0))
    if model is not None:
        X0 = mr.corrupt(X0, model, 0)
        estimator.set_params(missingness={0: model})
        weights = inverse_probability_weights(X0, model)
        weights = weights if weights.ndim == 1 else weights.prod(axis=1)
    ratio = mr.density_ratio(X1, X0, estimator)
    values = np.where(weights > 0, ratio.predict_ratio(X0), 0.0)
    divisor = weights.sum() if normalize == "hajek" else len(X0)
    assert (weights * values).sum() / divisor == pytest.approx(1.0, abs=1e-9)
    assert ratio.intercept_ == -ratio.log_normalizer_


def test_the_objective_value_is_what_the_docstring_says():
    X1, X0 = lossy(ROWS)
    ratio = mr.density_ratio(X1, X0, mr.KLIEP(missingness={1: ROWS}, l2=[0.2, 0.5]))
    weights = inverse_probability_weights(X1, ROWS)
    mean = weights @ np.nan_to_num(X1) / weights.sum()
    theta = ratio.coef_
    value = theta @ mean - np.log(np.exp(X0 @ theta).mean())
    value -= 0.5 * (np.array([0.2, 0.5]) * theta**2).sum()
    assert ratio.objective_value_ == pytest.approx(-value, rel=1e-10)


# Invariances.


@settings(max_examples=25)
@given(
    shift=st.floats(-100, 100),
    seed=st.integers(0, 1000),
    model=st.sampled_from([ROWS, ENTRIES]),
)
def test_shifting_the_features_changes_nothing_under_hajek(shift, seed, model):
    X1, X0 = lossy(model, 200, seed)
    moved = mr.FunctionMissingness(
        lambda X: model.missing_probability(X - shift), rowwise=model.rowwise
    )
    with warnings.catch_warnings(action="ignore", category=WeightConcentrationWarning):
        here = mr.density_ratio(X1, X0, mr.KLIEP(missingness={1: model}))
        there = mr.density_ratio(
            X1 + shift, X0 + shift, mr.KLIEP(missingness={1: moved})
        )
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(
        there.predict_log_ratio(X0 + shift), here.predict_log_ratio(X0), atol=1e-6
    )


def test_shifting_the_features_changes_the_printed_objectives_optimum():
    X1, X0 = lossy(ROWS)
    moved = mr.FunctionMissingness(lambda X: ROWS.missing_probability(X - 1.0))
    printed = "horvitz-thompson"
    here = mr.density_ratio(X1, X0, mr.KLIEP(missingness={1: ROWS}, normalize=printed))
    there = mr.density_ratio(
        X1 + 1.0, X0 + 1.0, mr.KLIEP(missingness={1: moved}, normalize=printed)
    )
    assert np.abs(there.coef_ - here.coef_).max() > 1e-3


@settings(max_examples=25)
@given(logs=st.lists(st.floats(-6, 6), min_size=2, max_size=2))
def test_scaling_a_feature_divides_its_coefficient(logs):
    X1, X0 = samples(100)
    scale = 10.0 ** np.array(logs)
    here = mr.density_ratio(X1, X0)
    there = mr.density_ratio(X1 * scale, X0 * scale)
    np.testing.assert_allclose(there.coef_ * scale, here.coef_, rtol=1e-6)
    assert there.log_normalizer_ == pytest.approx(here.log_normalizer_, abs=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_order_of_rows_does_not_matter(model, two_normals):
    X, y = two_normals()
    estimator = mr.KLIEP()
    if model is not None:
        X[y == 1] = mr.corrupt(X[y == 1], model, 0)
        estimator.set_params(missingness={1: model})
    order = np.random.default_rng(5).permutation(len(X))
    one = estimator.fit(X, y).coef_
    other = estimator.fit(X[order], y[order]).coef_
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_sample_weight_stands_for_repetitions(model, normalize, two_normals):
    X, y = two_normals()
    X = X if model is None else mr.corrupt(X, model, 0)
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    for estimator in (
        mr.KLIEP(normalize=normalize),
        mr.NaiveBayesRatio(mr.KLIEP(normalize=normalize)),
    ):
        estimator.set_params(missingness={0: model, 1: model})
        weighted = estimator.fit(X, y, sample_weight=counts).coef_
        repeated = estimator.fit(X.repeat(counts, axis=0), y.repeat(counts)).coef_
        np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def test_only_the_proportions_of_sample_weights_within_a_class_matter(two_normals):
    X, y = two_normals()
    weight = np.random.default_rng(0).exponential(size=len(X))
    one = mr.KLIEP().fit(X, y, weight)
    other = mr.KLIEP().fit(X, y, np.where(y == 1, 5.0, 0.2) * weight)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-9)


# The penalty.


def test_a_larger_penalty_gives_shorter_coefficients():
    X1, X0 = samples()
    fits = [
        mr.density_ratio(X1, X0, mr.KLIEP(l2=l2)) for l2 in (0.0, 1e-10, 0.1, 1.0, 1e10)
    ]
    lengths = [np.linalg.norm(ratio.coef_) for ratio in fits]
    assert lengths == sorted(lengths, reverse=True)
    np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, atol=1e-8)
    np.testing.assert_allclose(fits[-1].predict_ratio(X0), 1.0, atol=1e-8)


# Per-feature missingness in a joint fit.


def test_an_interaction_uses_product_weights_on_rows_with_both_observed():
    X1, X0 = lossy(ENTRIES, 2000)
    basis = mr.PolynomialBasis(degree=1, interactions=[(0, 1)])
    ratio = mr.density_ratio(X1, X0, mr.KLIEP(basis=basis, missingness={1: ENTRIES}))
    weights = inverse_probability_weights(X1, ENTRIES)
    product = weights.prod(axis=1)
    both = product > 0.0
    expected = [
        *((weights * np.nan_to_num(X1)).sum(axis=0) / weights.sum(axis=0)),
        np.average(X1[both].prod(axis=1), weights=product[both]),
    ]
    features = np.c_[X0, X0.prod(axis=1)]
    mass = ratio.predict_ratio(X0)
    np.testing.assert_allclose(
        np.average(features, axis=0, weights=mass), expected, atol=1e-6
    )


def test_the_denominator_uses_complete_rows_with_product_weights():
    X1, X0 = samples()
    X0 = mr.corrupt(X0, ENTRIES, 0)
    forward = mr.KLIEP(missingness={0: ENTRIES}, direction="forward")
    joint = mr.density_ratio(X1, X0, forward)
    weights = inverse_probability_weights(X0, ENTRIES).prod(axis=1)
    complete = weights > 0.0
    X = np.concatenate([X1, X0[complete]])
    y = np.repeat([1, 0], [len(X1), complete.sum()])
    weight = np.concatenate([np.ones(len(X1)), weights[complete]])
    by_hand = mr.KLIEP().fit(X, y, weight)
    np.testing.assert_allclose(joint.coef_, by_hand.coef_, atol=1e-8)
    assert joint.effective_sample_size_[0].observed == complete.sum()


def test_a_gaussian_basis_uses_complete_rows_in_both_classes():
    X1, X0 = lossy(ENTRIES)
    basis = mr.GaussianBasis(centers=X0[:5], bandwidth=1.0)
    ratio = mr.density_ratio(
        X1, X0, mr.KLIEP(basis=basis, missingness={1: ENTRIES}, l2=0.01)
    )
    weights = inverse_probability_weights(X1, ENTRIES).prod(axis=1)
    complete = weights > 0.0
    features = basis.fit(X0).transform(X1[complete])
    # At the optimum the means differ by what the penalty pulls.
    tilted = np.average(basis.transform(X0), axis=0, weights=ratio.predict_ratio(X0))
    np.testing.assert_allclose(
        tilted + 0.01 * ratio.coef_,
        np.average(features, axis=0, weights=weights[complete]),
        atol=1e-7,
    )


# What is said of the fit.


def test_effective_sample_sizes_are_kishs_and_the_papers():
    X1, X0 = lossy(ROWS)
    ratio = mr.density_ratio(X1, X0, mr.KLIEP(missingness={1: ROWS}))
    weights = inverse_probability_weights(X1, ROWS)
    size = ratio.effective_sample_size_[1]
    assert size.rows == len(X1)
    assert size.observed == (weights > 0).sum()
    assert size.kish == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert size.worst_case == pytest.approx(0.4 * len(X1))
    assert ratio.effective_sample_size_[0].kish == len(X0)


@pytest.mark.filterwarnings(
    "ignore::missratio.missingness.MissingnessContradictionWarning"
)
def test_a_few_rows_that_carry_the_weight_are_warned_of_by_feature():
    X1, X0 = samples()
    rows = mr.StepMissingness([1.0, 0.0], 2.2, 0.999)
    entries = mr.StepMissingness([0.0, 1.0], 2.2, [0.0, 0.999], rowwise=False)
    for kind in (mr.KLIEP(l2=0.1), mr.NaiveBayesRatio(mr.KLIEP(l2=0.1))):
        for phi, message in ((rows, "Class 1"), (entries, "Class 1, feature 'x1'")):
            with pytest.warns(WeightConcentrationWarning, match=message):
                mr.density_ratio(X1, X0, kind, missingness={1: phi})


@pytest.mark.parametrize("missing", [False, True])
def test_the_tilts_size_is_kishs_of_the_weights_times_the_ratio(missing):
    """And where it is small, it is said, with the remedy."""
    rng = np.random.default_rng(0)
    X1, X0 = rng.normal(1, 1, (300, 3)), rng.normal(0, 1, (300, 3))
    phi = mr.StepMissingness([1.0, 0.0, 0.0], 0.5, 0.3)
    models = {0: phi} if missing else None
    if missing:
        X0 = mr.corrupt(X0, phi, random_state=0)
    with pytest.warns(SmallSampleWarning, match="rest on few rows of class 0.*'js'"):
        ratio = mr.density_ratio(X1, X0, mr.KLIEP(missingness=models))
    seen = X0[~np.isnan(X0).any(axis=1)]
    mass = ratio.predict_ratio(seen) / (1.0 - phi.missing_probability(seen))
    if not missing:
        mass = ratio.predict_ratio(seen)
    expected = mass.sum() ** 2 / (mass @ mass)
    assert ratio.tilt_sample_size_ == pytest.approx(expected, rel=1e-6)
    assert ratio.tilt_sample_size_ < 40 < ratio.effective_sample_size_[0].kish
    with warnings.catch_warnings(action="error"):
        close = mr.density_ratio(X1 - 0.8, X0, mr.KLIEP(missingness=models))
        held = mr.density_ratio(X1, X0, mr.KLIEP(missingness=models, l2=0.1))
    assert close.tilt_sample_size_ > 150 > held.tilt_sample_size_
    # A penalty that is too weak holds nothing back.
    weak = mr.KLIEP(missingness=models, l2=1e-4)
    with pytest.warns(SmallSampleWarning, match=r"worth [1-3] .*, for 3 coeff"):
        mr.density_ratio(X1 + 1.0, X0, weak)


def test_the_score_is_minus_the_objective_on_the_rows_given(two_normals):
    X, y = two_normals()
    ratio = mr.KLIEP(l2=0.1).fit(X, y)
    penalty = 0.05 * (ratio.coef_**2).sum()
    assert ratio.score(X, y) == pytest.approx(-ratio.objective_value_ + penalty)
    new, labels = two_normals(seed=1)
    log_ratio = ratio.predict_log_ratio(new)
    normaliser = np.log(np.exp(log_ratio[labels == 0]).mean())
    expected = log_ratio[labels == 1].mean() - normaliser
    assert ratio.score(new, labels) == pytest.approx(expected)
    X[y == 1] = mr.corrupt(X[y == 1], ROWS, 0)
    ratio = mr.KLIEP(missingness={1: ROWS}).fit(X, y)
    assert ratio.score(X, y) == pytest.approx(-ratio.objective_value_)
