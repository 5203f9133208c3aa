"""Intervals of a ratio hold the truth, and standard errors are the bootstrap's.

The simulation is that of docs/validity.md.
"""

import numpy as np
import pytest
import ratio_coverage
from ratio_coverage import Setting

pytestmark = pytest.mark.validity

COEFFICIENTS, POINTS = slice(0, 2), slice(3, None)
# Three binomial standard deviations of 300 repeats.
NOISE = 0.038


@pytest.mark.parametrize("queried", [None, 10, 50, 200])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("losing", ["rows", "entries"])
def test_coverage_is_near_nominal(losing, share, queried):
    outcome = ratio_coverage.simulate(Setting(losing, share, queried), 300)
    coverage = outcome.coverage()
    # With nine tenths missing a hundred rows are left, whose weights have long tails.
    slack = 0.05 if share == 0.9 else 0.0
    for part in (COEFFICIENTS, POINTS):
        assert coverage[part].min() > 0.95 - NOISE - slack
        assert coverage[part].max() < 0.95 + NOISE + 0.025


@pytest.mark.parametrize(
    "options",
    [{"both": True}, {"normalize": "horvitz-thompson"}, {"estimator": "naive-bayes"},
     {"n_rows": 300}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("losing", ["rows", "entries"])
@pytest.mark.parametrize("queried", [None, 50])
def test_coverage_is_near_nominal_for_other_fits(losing, queried, options):
    setting = Setting(losing, 0.5, queried, **options)
    coverage = ratio_coverage.simulate(setting, 300).coverage()
    for part in (COEFFICIENTS, POINTS):
        assert coverage[part].min() > 0.95 - NOISE - 0.01
        assert coverage[part].max() < 0.95 + NOISE + 0.01


@pytest.mark.parametrize("losing", ["rows", "entries"])
def test_a_learned_phi_taken_for_known_gives_too_short_or_too_long_intervals(losing):
    few = ratio_coverage.simulate(Setting(losing, 0.5, 10), 300)
    assert few.coverage(few.left_out)[POINTS].max() < 0.8
    assert few.inflation(few.left_out)[POINTS].max() < 0.6
    many = ratio_coverage.simulate(Setting(losing, 0.9, 200), 300)
    assert many.inflation(many.left_out)[POINTS].min() > 1.1


@pytest.mark.parametrize("queried", [None, 30, 200])
@pytest.mark.parametrize("losing", ["rows", "entries"])
@pytest.mark.parametrize("estimator", ["joint", "naive-bayes"])
def test_standard_errors_agree_with_the_bootstrap(losing, queried, estimator):
    setting = Setting(losing, 0.5, queried, estimator=estimator)
    ratios = []
    for seed in range(3):
        data = ratio_coverage.draw(setting, np.random.default_rng(seed))
        expected = ratio_coverage.bootstrap(setting, data, 300, seed)
        found = ratio_coverage.standard_errors(ratio_coverage.fit(setting, data), data)
        ratios.append(found / expected)
    # The spread of 300 draws is known to 5 %, the mean of three tables to 3 %.
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.12)


@pytest.mark.parametrize("place", range(16))
def test_intervals_that_cover_too_seldom_are_called_unreliable(place):
    setting = ratio_coverage.random_settings(16, seed=6)[place]
    try:
        outcome = ratio_coverage.simulate(setting, 100, jobs=1)
    except ValueError as refusal:
        # Too few complete rows for a joint fit: there are no intervals to call so.
        assert "needs more than" in str(refusal)  # noqa: PT017
        return
    claimed = outcome.held[:, ratio_coverage.CLAIMED]
    sure = outcome.reliable
    if sure.sum() >= 20:
        # 0.90, less three binomial deviations.
        least = 0.90 - 3.0 * np.sqrt(0.09 / sure.sum())
        assert claimed[sure].mean(axis=0).min() > least
    if claimed.mean(axis=0).min() < 0.85:
        assert sure.mean() < 0.3


@pytest.mark.parametrize("n_rows", [1000, 3000])
@pytest.mark.parametrize("name", ratio_coverage.HEAVY)
def test_intervals_under_heavy_tails_hold_or_are_called_unreliable(name, n_rows):
    held, sure = ratio_coverage.gamma_tables(ratio_coverage.HEAVY[name], n_rows, 150)
    if sure.sum() >= 20:
        # 0.90, less three binomial deviations.
        assert held[sure].mean() > 0.90 - 3.0 * np.sqrt(0.09 / sure.sum())
    if name in ("logistic, slope 1.0", "logistic, slope 1.5"):
        assert sure.mean() < 0.06
    if name == "logistic, slope 0.3" or "0.9" in name:
        assert sure.mean() > 0.8
