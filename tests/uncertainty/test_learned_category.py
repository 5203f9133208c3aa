"""Standard errors where φ of a category's levels was learned."""

import numpy as np
import pytest
from scipy.special import logit

import missratio as mr
from missratio.missingness import Block, BlockMissingness

CHANCE = np.array([0.15, 0.35, 0.6])


def table(seed, n):
    """Class 1 loses a number, and a category of three levels by its level."""
    rng = np.random.default_rng([7, seed])
    y, common = np.repeat([1, 0], n), rng.normal(size=2 * n)
    place = 1 + 0.8 * common + 0.5 * rng.normal(size=2 * n) + 0.3 * y
    level = np.clip(np.round(place), 0, 2).astype(int)
    numbers = common[:, None] + 0.7 * rng.normal(size=(2 * n, 2))
    numbers[:, 0] += 0.4 * y
    Z = np.column_stack([numbers, np.eye(3)[level][:, 1:]])
    lost = (rng.random(2 * n) < CHANCE[level]) & (y == 1)
    gone = (rng.random(2 * n) < 1 / (1 + np.exp(1 - numbers[:, 0]))) & (y == 1)
    X, revealed = Z.copy(), np.full(Z.shape, np.nan)
    X[lost, 2:], X[gone, 0] = np.nan, np.nan
    for columns, missing in (([2, 3], lost), ([0], gone)):
        chosen = rng.choice(np.flatnonzero(missing), 60, replace=False)
        revealed[np.ix_(chosen, columns)] = Z[np.ix_(chosen, columns)]
    return X, y, revealed


def truth():
    """φ as it is."""
    odds = logit(CHANCE)
    ward = mr.LogisticMissingness(odds[0], odds[1:] - odds[0], rowwise=True)
    never = [-np.inf] * 3
    base = mr.LogisticMissingness([-1.0, *never], [1.0, 0.0, 0.0, 0.0])
    return BlockMissingness(base, (Block((2, 3), (2, 3), ward),), 4)


def study(repeats, n, way):
    """The spread of coefficients, their standard errors, and those with φ known."""
    found = []
    for seed in range(repeats):
        X, y, revealed = table(seed, n)
        own = y == 1
        phi = mr.learn_missingness(
            X[own],
            None if way == "table" else revealed[own],
            from_table=way != "look-ups",
            categories=[[2, 3]],
            check=False,
        )
        ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
        uncertainty = mr.ratio_uncertainty(ratio, X, y)
        source = "same" if way == "look-ups" else "other"
        assert uncertainty.learned_on == {1: source}
        plain = mr.KLIEP(missingness={1: truth()}).fit(X, y)
        known = mr.ratio_uncertainty(plain, X, y).standard_errors
        found.append([ratio.coef_, uncertainty.standard_errors[:-1], known[:-1]])
    coef, errors, known = np.array(found).transpose(1, 0, 2)
    spread = coef.std(axis=0, ddof=1)
    return spread, np.sqrt((errors**2).mean(0)), np.sqrt((known**2).mean(0))


@pytest.mark.filterwarnings("ignore::missratio.uncertainty.UnreliableIntervalWarning")
def test_errors_of_a_learned_category_are_in_the_standard_errors():
    spread, errors, known = study(30, 1200, "look-ups")
    assert (errors / spread > 0.7).all()
    assert (errors / spread < 1.5).all()
    # Those of the indicators are larger than with φ known.
    assert (errors[2:] > 1.1 * known[2:]).all()


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::missratio.uncertainty.UnreliableIntervalWarning")
@pytest.mark.parametrize("way", ["look-ups", "table", "both"])
def test_standard_errors_are_the_spread_of_the_coefficients(way):
    spread, errors, _ = study(120, 1500, way)
    assert (errors / spread > 0.8).all()
    assert (errors / spread < (1.3 if way == "look-ups" else 2.0)).all()
