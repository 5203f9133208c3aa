"""The accumulator: merging blocks equals accumulating all their rows at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from missratio.moments import SYRK_FEATURES, Parameters, Sums, accumulate
from missratio.objective import JensenShannonObjective, Term

LINKS = {
    "exponential": Term.exponential,
    "linear": Term.linear,
    "logistic": JensenShannonObjective().denominator,
}


def draw_block(
    seed, n_problems, n_rows, n_features, size, weighted, intercept, centred
):
    """Features, weights and parameters whose scores have about the given size."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_problems, n_rows, n_features))
    weights = rng.exponential(size=(n_problems, n_rows)) + 0.1 if weighted else None
    at = Parameters(
        size * rng.normal(size=(n_problems, n_features)),
        None if centred else rng.normal(size=(n_problems, n_features)),
        size * rng.normal(size=n_problems) if intercept else None,
    )
    return features, weights, at


blocks = st.builds(
    draw_block,
    seed=st.integers(0, 2**32 - 1),
    n_problems=st.integers(1, 3),
    n_rows=st.integers(4, 30),
    n_features=st.integers(1, 4),
    size=st.sampled_from([0.0, 1.0, 1e3]),
    weighted=st.booleans(),
    intercept=st.booleans(),
    centred=st.booleans(),
)


def part(term_of, block, rows, second_order):
    features, weights, at = block
    weights = None if weights is None else weights[:, rows]
    return accumulate(
        term_of, features[:, rows], weights, at, second_order=second_order
    )


def assert_same_sums(one, other, rtol=1e-10):
    # Scores differ in their last digit by how many rows BLAS takes at once.
    for name in ("log_scale", "lowest", "highest"):
        mine, theirs = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-13)
    rescale = np.exp(one.log_scale - other.log_scale)
    for name in ("value", "slope", "curvature"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if theirs is None:
            assert mine is None
            continue
        mine = (mine.T * rescale).T
        size = 1.0 + np.abs(theirs).max()
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * size)


@settings(max_examples=100)
@given(
    block=blocks,
    link=st.sampled_from(sorted(LINKS)),
    second_order=st.booleans(),
    data=st.data(),
)
def test_merging_any_split_in_any_order_equals_accumulating_all_rows(
    block, link, second_order, data
):
    n_rows = block[0].shape[1]
    term_of = LINKS[link]
    order = data.draw(st.permutations(range(n_rows)))
    cuts = data.draw(st.lists(st.integers(1, n_rows - 1), max_size=5, unique=True))
    pieces = np.split(np.array(order), sorted(cuts))
    parts = [part(term_of, block, piece, second_order) for piece in pieces]
    together = part(term_of, block, np.arange(n_rows), second_order)
    assert_same_sums(Sums.merged(parts), together)
    # In groups as well, and backwards.
    first, *rest = parts[::-1]
    for each in rest:
        first = Sums.merged([first, each])
    assert_same_sums(first, together)


@settings(max_examples=50)
@given(block=blocks)
def test_the_exponential_sum_is_log_sum_exp_of_the_scores(block):
    features, weights, at = block
    score = at.score(features)
    sums = accumulate(Term.exponential, features, weights, at, second_order=False)
    np.testing.assert_allclose(
        np.log(sums.value) + sums.log_scale,
        logsumexp(score, axis=-1, b=1.0 if weights is None else weights),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("size", [1e3, 1e100])
def test_exponentials_of_any_finite_score_never_overflow(size):
    # Overflow would be a RuntimeWarning, and warnings are errors.
    features, weights, at = draw_block(0, 2, 20, 3, size, True, True, False)
    sums = accumulate(Term.exponential, features, weights, at, second_order=True)
    for each in (sums, Sums.merged([sums, sums])):
        assert (each.value > 0.0).all()
        for found in (each.value, each.slope, each.curvature):
            assert np.isfinite(found).all()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_features", [3, SYRK_FEATURES])
def test_sums_are_what_they_say(n_features, intercept):
    features, weights, at = draw_block(
        1, 2, 50, n_features, 0.2, True, intercept, False
    )
    sums = accumulate(Term.exponential, features, weights, at, second_order=True)
    centred = features - at.centre[:, None, :]
    if intercept:
        ones = np.ones((*features.shape[:2], 1))
        centred = np.concatenate([centred, ones], axis=2)
    mass = weights * np.exp(at.score(features) - sums.log_scale[:, None])
    np.testing.assert_allclose(sums.value, mass.sum(axis=1))
    np.testing.assert_allclose(sums.slope, np.einsum("bn,bnf->bf", mass, centred))
    np.testing.assert_allclose(
        sums.curvature,
        np.einsum("bn,bnf,bng->bfg", mass, centred, centred),
        atol=1e-12,
    )


@pytest.mark.parametrize("n_features", [3, SYRK_FEATURES])
def test_negative_curvature_is_summed_whatever_the_number_of_features(n_features):
    features, weights, at = draw_block(2, 1, 80, n_features, 0.1, True, False, True)

    def sine(score):
        return Term(np.sin(score), np.cos(score), -np.sin(score))

    sums = accumulate(sine, features, weights, at, second_order=True)
    curvature = -weights * np.sin(at.score(features))
    expected = np.einsum("bn,bnf,bng->bfg", curvature, features, features)
    np.testing.assert_allclose(sums.curvature, expected, atol=1e-12)
