"""Γ: by what factor the odds of being missing may be wrong."""

import classifiers
import numpy as np
import pytest
from classifiers import Total
from classifiers import learned as problem

import missratio as mr
from missratio.classifier.certify import FACTOR_PRECISION
from missratio.classifier.promise import Trust, Weighted
from missratio.missingness import LogisticMissingness, StepMissingness

STEP = StepMissingness(1.0, 0.0, 0.6)


def certified(model, **options):
    options = {"alpha": 0.2, "missingness": {0: model}} | options
    return classifiers.certified(Total(), **options)


def stepped(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X0 = mr.corrupt(rng.normal(size=(n, 1)), STEP, rng)
    X = np.concatenate([X0, rng.normal(1.5, 1.0, (400, 1))])
    return X, np.repeat([0, 1], [n, 400])


@pytest.mark.parametrize("rule", ["auto", "thinning", "betting", "bernstein"])
@pytest.mark.parametrize("factor", [1.0, 1.2, 1.5])
def test_what_was_allowed_for_is_what_can_be_borne(rule, factor):
    X, y = stepped()
    model = certified(STEP, rule=rule, odds_factor=factor).fit(X, y)
    gamma = model.certificate_.sensitivity
    assert gamma >= factor * (1 - 2 * FACTOR_PRECISION)
    # A threshold is a score: there is slack up to the next, and not more.
    assert gamma <= factor * 1.1


@pytest.mark.parametrize("rule", ["thinning", "betting", "tuned-betting"])
def test_odds_wrong_by_a_larger_factor_cost_power(rule):
    X, y = stepped()
    thresholds = [
        certified(STEP, rule=rule, odds_factor=factor).fit(X, y).threshold_
        for factor in (1.0, 1.3, 2.0)
    ]
    assert thresholds[0] < thresholds[1] < thresholds[2]


def test_the_factor_is_the_largest_at_which_the_rule_chooses_as_much():
    X, y = stepped()
    model = certified(STEP, rule="betting").fit(X, y)
    gamma = model.certificate_.sensitivity
    at_it = certified(STEP, rule="betting", odds_factor=gamma).fit(X, y)
    beyond = certified(STEP, rule="betting", odds_factor=1.01 * gamma).fit(X, y)
    assert at_it.threshold_ == model.threshold_
    assert beyond.threshold_ > model.threshold_


@pytest.mark.parametrize("rowwise", [False, True])
def test_the_factor_of_a_learned_phi_comes_on_top_of_its_region(rowwise):
    # The φ of the region that asks most uses up the slack, as a known φ does.
    X, y, learned, truth = problem(rowwise=rowwise)
    rule = {"rule": "bernstein"}
    gamma = certified(learned, **rule).fit(X, y).certificate_.sensitivity
    known = certified(truth, **rule).fit(X, y).certificate_.sensitivity
    assert 1.0 <= gamma < 1.05
    assert 1.0 <= known < 1.05


@pytest.mark.filterwarnings("ignore::missratio.classifier.RepeatedRowsWarning")
def test_slack_in_alpha_is_slack_in_the_odds():
    # A certificate for α on scores with few values, where the next one is far away.
    X, y = stepped()
    rounded = np.floor(X) + 0.5  # on the same side of φ's threshold
    tied = certified(STEP, rule="betting").fit(rounded, y).certificate_
    smooth = certified(STEP, rule="betting").fit(X, y).certificate_
    assert tied.estimated_error < smooth.estimated_error
    assert tied.sensitivity > 1.1 * smooth.sensitivity


def test_nothing_is_said_where_nothing_is_missing_or_certified(two_normals):
    X, y = two_normals(400, 1, shift=1.5)
    complete = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.2, random_state=0)
    certificate = complete.fit(X, y).certificate_
    assert certificate.sensitivity is None
    assert "Γ" not in str(certificate)
    X, y = stepped(60)
    model = certified(STEP, alpha=0.01, on_infeasible="reject_all").fit(X, y)
    assert model.certificate_.sensitivity is None


def test_odds_of_nothing_may_be_wrong_by_any_factor():
    # φ is 0 where there is data: however wrong, it stays 0.
    never = StepMissingness(1.0, 50.0, 0.5)
    X, y = stepped()
    X[y == 0] = np.random.default_rng(0).normal(size=(3000, 1))
    certificate = certified(never, rule="flipped-betting").fit(X, y).certificate_
    assert certificate.sensitivity == np.inf
    assert certificate.to_dict()["sensitivity"] is None
    assert "Γ = inf" in str(certificate)


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("cap", [1.5, 1e3, 1e15])
@pytest.mark.parametrize("factor", [1.0, 2.0, 1024.0])
def test_rows_within_reach_stay_within_reach_of_wider_odds(rowwise, cap, factor):
    phi = LogisticMissingness(-1.0, [1.0, 1.0], rowwise)
    rows = np.random.default_rng(0).normal(size=(200, 2))
    trust = Trust(phi, cap=cap)
    wider = trust.widened(factor)
    assert np.isfinite(wider.cap)
    within = trust.edges(rows)[1] <= cap
    assert (wider.edges(rows)[1][within] <= wider.cap * (1 + 1e-9)).all()
    scored = Weighted(rows, trust.score(rows, rows[:, 0]))
    sample = scored.weighed(wider).sample(wider)
    assert sample.n_scored == within.sum()
