"""Terms and combinations against numerical derivatives."""

import numpy as np
import pytest
from objectives import Anchored, Hellinger, JensenShannon, KullbackLeibler

from missratio.objective import (
    Expectations,
    FDivergenceObjective,
    JensenShannonObjective,
    KLIEPObjective,
    KullbackLeiblerObjective,
    Pearson,
    Term,
)

STEP = 1e-5


OBJECTIVES = {
    "KLIEP": KLIEPObjective(),
    "KL": KullbackLeiblerObjective(),
    "JS": JensenShannonObjective(),
    "anchored": Anchored(),
    **{
        f"{type(divergence).__name__} {link}": FDivergenceObjective(divergence, link)
        for divergence in (KullbackLeibler(), JensenShannon(), Pearson(), Hellinger())
        for link in ("log", "identity")
    },
}


def unscaled(term):
    scale = np.exp(np.asarray(term.log_scale))[..., None]
    return scale * term.value, scale * term.slope, scale * term.curvature


def terms_of(terms):
    return [terms] if isinstance(terms, Term) else list(terms)


@pytest.mark.parametrize("side", ["numerator", "denominator"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_slope_and_curvature_of_a_term_are_its_derivatives(name, side):
    objective = OBJECTIVES[name]
    score = np.linspace(0.2, 3.0, 25) if "identity" in name else np.linspace(-3, 3, 25)
    at, above, below = (
        [unscaled(term) for term in terms_of(getattr(objective, side)(point))]
        for point in (score, score + STEP, score - STEP)
    )
    for (_, slope, curvature), up, down in zip(at, above, below, strict=True):
        np.testing.assert_allclose(slope, (up[0] - down[0]) / (2 * STEP), rtol=1e-6)
        np.testing.assert_allclose(
            curvature, (up[1] - down[1]) / (2 * STEP), rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradient_and_hessian_of_a_combination_are_its_derivatives(name):
    objective = OBJECTIVES[name]
    n_terms = 1 + len(terms_of(objective.denominator(np.ones((1, 2)))))
    rng = np.random.default_rng(0)
    values, scales = rng.uniform(0.5, 2, (n_terms, 4)), rng.normal(size=(n_terms, 4))
    scales[0] = 0.0

    def combine(shift):
        return objective.combine(Expectations(values + shift, scales))

    at = combine(0.0)
    for i in range(n_terms):
        shift = np.zeros((n_terms, 1))
        shift[i] = STEP
        up, down = combine(shift), combine(-shift)
        np.testing.assert_allclose(
            at.gradient[i], (up.value - down.value) / (2 * STEP), rtol=1e-6, atol=1e-8
        )
        bend = (up.gradient - down.gradient) / (2 * STEP)
        hessian = np.zeros_like(bend) if at.hessian is None else at.hessian[i]
        np.testing.assert_allclose(hessian, bend, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "divergence", [KullbackLeibler(), JensenShannon(), Pearson(), Hellinger()], ids=str
)
def test_a_divergence_is_convex_zero_at_one_and_its_derivatives_are_right(divergence):
    ratio = np.geomspace(0.1, 10.0, 30)
    up, down = ratio * (1 + STEP), ratio * (1 - STEP)
    width = up - down
    assert divergence.generator(np.ones(1)) == pytest.approx(0.0)
    assert (divergence.second(ratio) > 0.0).all()
    pairs = [
        (divergence.generator, divergence.first),
        (divergence.first, divergence.second),
        (divergence.second, divergence.third),
    ]
    for function, derivative in pairs:
        np.testing.assert_allclose(
            derivative(ratio),
            (function(up) - function(down)) / width,
            rtol=1e-6,
            atol=1e-8,
        )


@pytest.mark.parametrize(
    ("short", "divergence"),
    [
        (KullbackLeiblerObjective(), KullbackLeibler()),
        (JensenShannonObjective(), JensenShannon()),
    ],
    ids=["KL", "JS"],
)
def test_objectives_written_out_in_the_score_are_those_of_their_generator(
    short, divergence
):
    score = np.linspace(-4, 4, 30)
    long = FDivergenceObjective(divergence, "log")
    sign = -1.0 if short.linear_numerator else 1.0
    upper, lower = unscaled(short.numerator(score)), unscaled(short.denominator(score))
    pairs = [(long.numerator(score), upper, sign), (long.denominator(score), lower, 1)]
    for ours, theirs, factor in pairs:
        for mine, other in zip(unscaled(ours), theirs, strict=True):
            # The values may differ by a constant, which no optimum sees.
            difference = mine - factor * other
            np.testing.assert_allclose(difference, difference[0], atol=1e-12)
        np.testing.assert_allclose(unscaled(ours)[1], factor * theirs[1], atol=1e-12)


@pytest.mark.parametrize("objective", [KLIEPObjective(), JensenShannonObjective()])
@pytest.mark.parametrize("size", [1e3, 1e5])
def test_scores_of_any_size_neither_overflow_nor_turn_into_nan(objective, size):
    score = np.array([[-size, 0.0, size]])
    for side in (objective.numerator, objective.denominator):
        for array in (side(score).value, side(score).slope, side(score).curvature):
            assert np.isfinite(array).all()
