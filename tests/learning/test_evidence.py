"""Evidence: grouping changes nothing, and a batch is as good as one fit at a time."""

import numpy as np
import pytest
from scipy.special import expit

from missratio.learning import evidence as evidence_module
from missratio.learning.evidence import Evidence, fit_evidence
from missratio.learning.region import inverse_information


def evidence_of(n=400, m=30, d=1, seed=0, n_missing=100, shift=1.0):
    rng = np.random.default_rng(seed)
    return Evidence.collect(
        rng.normal(size=(d, n)), rng.normal(shift, 1.0, (d, m)), n_missing
    )


@pytest.fixture
def ungrouped(monkeypatch):
    """Evidence that keeps every value."""

    def collect(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(evidence_module, "GROUPS", 10**9)
            patch.setattr(evidence_module, "KEPT_ROWS", 10**9)
            return Evidence.collect(*arguments)

    return collect


@pytest.mark.parametrize("law", ["normal", "standard_cauchy", "exponential"])
@pytest.mark.parametrize("penalised", [False, True])
def test_grouping_moves_a_fit_by_thousandths_of_its_standard_error(
    ungrouped, law, penalised
):
    rng = np.random.default_rng(0)
    values = getattr(rng, law)(size=(1, 60_000))
    lost = rng.uniform(size=values.shape) < expit(0.5 * values - 2.0)
    revealed = values[lost][None, :300]
    arguments = values[~lost][None], revealed, int(lost.sum())
    few, all_of_them = Evidence.collect(*arguments), ungrouped(*arguments)
    assert len(few.mass) < 2000 < len(all_of_them.mass)
    assert few.mass.sum() == all_of_them.mass.sum()
    fits = fit_evidence([few, all_of_them], penalised=penalised)
    inverse = inverse_information(all_of_them, fits.theta[1])
    errors = np.sqrt(np.diagonal(inverse))
    allowed = 1e-3 if law == "normal" else 5e-3
    assert (np.abs(fits.theta[0] - fits.theta[1]) < allowed * errors).all()
    own = inverse_information(few, fits.theta[0])
    assert own == pytest.approx(inverse, rel=1e-3)


def test_groups_keep_the_mean_and_the_outermost_values():
    values = np.random.default_rng(0).standard_cauchy((1, 50_000))
    evidence = Evidence.collect(values, np.zeros((1, 1)), 10)
    kept, mass = evidence.values[0, 1:], evidence.mass[1:]
    assert (kept * mass).sum() == pytest.approx(values.sum())
    ordered = np.sort(values[0])
    assert (kept[:100] == ordered[:100]).all()
    assert (kept[-100:] == ordered[-100:]).all()
    assert mass.sum() == 50_000


def test_few_values_are_kept_as_they_are():
    evidence = evidence_of(n=1000)
    assert (evidence.mass == 1.0).all()
    assert evidence.n_revealed == 30
    assert evidence.revealed_mass == 30.0
    assert (evidence.outcome == np.repeat([1.0, 0.0], [30, 1000])).all()


def test_values_that_repeat_are_counted_and_not_averaged():
    values = np.random.default_rng(0).integers(0, 300, (1, 50_000)) / 10.0
    evidence = Evidence.collect(values, np.zeros((1, 1)), 10)
    distinct, counts = np.unique(values, return_counts=True)
    assert (evidence.values[0, 1:] == distinct).all()
    assert (evidence.mass[1:] == counts).all()


def test_of_very_many_rows_some_stand_for_all(ungrouped):
    rng = np.random.default_rng(0)
    rows, revealed = rng.normal(size=(2, 70_000)), rng.normal(0.5, 1.0, (2, 100))
    few = Evidence.collect(rows, revealed, 5000)
    whole = ungrouped(rows, revealed, 5000)
    assert len(few.mass) < 2**15
    assert few.mass.sum() == pytest.approx(70_100)
    fits = fit_evidence([few, whole], penalised=True)
    errors = np.sqrt(np.diagonal(inverse_information(whole, fits.theta[1])))
    assert (np.abs(fits.theta[0] - fits.theta[1]) < 0.2 * errors).all()


@pytest.mark.parametrize("penalised", [False, True])
def test_a_batch_of_any_sizes_equals_one_at_a_time(monkeypatch, penalised):
    monkeypatch.setattr(evidence_module, "BATCH_ENTRIES", 1000)
    sizes = [(900, 20), (50, 5), (400, 80), (60, 60), (300, 10)]
    problems = [evidence_of(n, m, seed=n) for n, m in sizes]
    together = fit_evidence(problems, penalised=penalised)
    for i, problem in enumerate(problems):
        alone = fit_evidence([problem], penalised=penalised)
        assert together.theta[i] == pytest.approx(alone.theta[0], abs=1e-5)
        assert together.log_likelihood[i] == pytest.approx(alone.log_likelihood[0])


@pytest.mark.parametrize("penalised", [False, True])
def test_a_fit_moves_with_the_scale_and_origin_of_the_values(penalised):
    evidence = evidence_of()
    moved = Evidence(3.0 + 100.0 * evidence.values, 30, evidence.mass, 100)
    here, there = fit_evidence([evidence, moved], penalised=penalised).theta
    assert there[1] == pytest.approx(here[1] / 100.0, rel=1e-4)
    assert there[0] == pytest.approx(here[0] - 3.0 * here[1] / 100.0, rel=1e-4)


def test_the_log_likelihood_is_that_of_the_fit():
    evidence = evidence_of(d=2)
    fits = fit_evidence([evidence], penalised=True)
    p = expit(fits.theta[0, 0] + fits.theta[0, 1:] @ evidence.values)
    expected = np.log(p[:30]).sum() + np.log1p(-p[30:]).sum()
    assert fits.log_likelihood[0] == pytest.approx(expected)


def test_only_maximum_likelihood_finds_out_about_separation():
    evidence = evidence_of(n=20, m=3, shift=50.0)
    assert fit_evidence([evidence], penalised=False).separated[0]
    firth = fit_evidence([evidence, evidence_of()], penalised=True)
    assert firth.converged.all()
    assert not firth.separated.any()


def test_another_budget_is_expected_to_bring_what_the_fit_says():
    evidence = evidence_of()
    theta = fit_evidence([evidence], penalised=False).theta[0]
    larger = evidence.at_budget(60, theta[1:])
    assert larger.revealed_mass == pytest.approx(60.0)
    assert larger.sampling_offset == pytest.approx(np.log(60 / 100))
    again = fit_evidence([larger], penalised=False).theta[0]
    assert again[1:] == pytest.approx(theta[1:], abs=1e-5)
    # No more can be looked up than are missing.
    most = evidence.at_budget(1e6, theta[1:])
    assert most.revealed_mass == pytest.approx(100.0)
    assert most.sampling_offset == pytest.approx(0.0)
    assert evidence.at_budget(30, theta[1:]) is evidence


def test_constant_columns_are_known_as_such():
    evidence = Evidence.collect(np.ones((1, 4)), np.ones((1, 2)), 9)
    assert evidence.constant.tolist() == [True]
    assert evidence.without_slope().values.shape == (0, 6)
    assert evidence_of(d=2).constant.tolist() == [False, False]
