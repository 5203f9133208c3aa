"""φ from histograms is φ from rows."""

from dataclasses import replace

import numpy as np
import pytest

import missratio as mr
from missratio.reproduce._learned import learned_weights


def by_the_library(run, method):
    """The same φ by learn_missingness, from rows whose queried cells are filled in."""
    X = run.numerator_rows()
    revealed = np.full_like(X, np.nan)
    for j, codes in enumerate(run.revealed):
        own = run.table.codes[j].take(run.numerator_train)
        for code in codes:
            cells = (own == code) & run.lost[j] & np.isnan(revealed[:, j])
            revealed[np.flatnonzero(cells)[0], j] = run.grids[1][j, code]
    return mr.learn_missingness(X, revealed, method=method)


@pytest.mark.parametrize(
    ("variant", "method"), [("published", "ml"), ("corrected", "firth")]
)
def test_weights_are_those_of_learn_missingness(make_run, variant, method):
    run = make_run(variant)
    phi = by_the_library(run, method)
    expected = 1.0 / (1.0 - phi.missing_probability(run.grids[1].T))
    np.testing.assert_allclose(
        learned_weights([run], corrected=variant == "corrected")[0],
        expected.T,
        rtol=1e-4,
    )


def test_runs_are_learned_from_one_by_one(make_run):
    runs = [make_run(number=number) for number in range(3)]
    together = learned_weights(runs, corrected=True)
    for run, weights in zip(runs, together, strict=True):
        alone = learned_weights([run], corrected=True)[0]
        np.testing.assert_allclose(weights, alone, rtol=1e-6)


def separated(run):
    """The run with all it looked up above all that is observed."""
    n_codes = run.table.n_codes
    high = np.full_like(run.revealed, n_codes - 2)
    observed = run.observed.copy()
    observed[:, 10:] = 0.0
    return replace(run, revealed=high, observed=observed)


def test_published_takes_a_slope_of_100_through_the_midpoint_where_separated(make_run):
    run = separated(make_run())
    weights = learned_weights([run], corrected=False)[0]
    grid = run.grids[1]
    n_missing = (run.complete - run.observed).sum(axis=1)
    for j in range(3):
        midpoint = (grid[j, 9] + grid[j, -2]) / 2
        log_odds = 100 * (grid[j, :10] - midpoint) + np.log(n_missing[j] / 20)
        np.testing.assert_allclose(weights[j, :10], 1 + np.exp(log_odds))


def test_corrected_stays_finite_where_separated(make_run):
    run = separated(make_run())
    weights = learned_weights([run], corrected=True)[0]
    assert np.isfinite(weights).all()
    assert (np.diff(weights[:, :10]) >= 0).all()


def test_where_nothing_is_lost_all_weigh_one(make_run):
    assert (learned_weights([make_run(share=0.0)], corrected=False) == 1.0).all()
