"""Certificates under a learned φ: the split of δ, the cap, and what they say."""

from dataclasses import replace
from functools import partial

import classifiers
import numpy as np
import pytest
from classifiers import Total, learned
from classifiers import learned as problem

import missratio as mr
from missratio.classifier.certify import refuse_open
from missratio.classifier.promise import Promise, Weighted
from missratio.exceptions import NoCertificateError
from missratio.weights import complete_row_weight_edges

# One table in twenty casts doubt on a right φ.
pytestmark = pytest.mark.filterwarnings("ignore:The data cast doubt")


def certified(model, **options):
    options = {"alpha": 0.2, "missingness": {0: model}} | options
    return classifiers.certified(Total(), **options)


# What is certified

refused = partial(pytest.raises, NoCertificateError, match="leaves too much open")


@pytest.mark.parametrize("odds", [1.0, 30.0])
def test_a_phi_that_leaves_too_much_open_is_refused_before_any_fit(odds):
    """Half of δ is the rule's: 400 rows without error bound it by 1 − .05^(1/400)."""
    X, y, phi, _ = problem(400, 9, 10, intercept=-2.6)
    low, high = complete_row_weight_edges(X[:400], phi, delta=0.05, odds_factor=odds)
    weights, share = np.sort(high[high > 0.0]), 1.0 - 0.05 ** (1.0 / 400.0)
    # One complete row in twenty is within reach, or the least weights leave no more.
    limit = min(weights[(len(weights) - 1) // 20] * share, 1.0 - low.mean())
    index = np.arange(400), np.arange(0)
    given = 0, 1, 1.001 * limit, 0.1, "auto", odds, "raise", *index, phi, None
    refuse_open(promise := Promise(*given), X[:400])
    below = replace(promise, alpha=0.999 * limit)
    refuse_open(replace(below, on_infeasible="reject_all"), X[:400])
    with refused() as caught:
        refuse_open(below, X[:400])
    message, said = caught.value.message, f"{np.median(weights):,.0f} rows (the"
    said = said if odds == 1.0 else "any number of rows"
    assert message.facts["weight"].startswith(said)
    assert message.facts["most"] == pytest.approx(0.999 * limit / share)
    open_to = np.median(phi.probability_band(X[:400], 0.05)[1][high > 0.0], axis=0)
    assert message.columns == (*np.argsort(-open_to)[:5],)
    classifier = certified(phi, alpha=0.5 * limit, odds_factor=odds)
    with refused():
        classifier.fit(X, y)
    assert not hasattr(classifier, "estimator_")


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("d", [1, 2])
def test_a_learned_model_is_certified(d, rowwise):
    X, y, learned, truth = problem(d=d, rowwise=rowwise, slope=0.7)
    model = certified(learned).fit(X, y)
    assert model.certificate_.certified
    complete = np.random.default_rng(1).normal(size=(20_000, d))
    assert 0.0 < model.predict(complete).mean() < 0.2
    # It costs something not to know.
    other = np.random.default_rng(2).normal(1.5, 1.0, (20_000, d))
    known = certified(truth).fit(X, y)
    assert model.predict(other).mean() < known.predict(other).mean()


@pytest.mark.filterwarnings("ignore::missratio.classifier.NoPowerWarning")
def test_only_the_controlled_classs_model_makes_it_doubtful():
    # φ of the other class is used to fit, and not to calibrate.
    X, y, learned, _ = problem()
    model = certified(learned).set_params(controlled_class=1, missingness={0: learned})
    model.fit(X, y)
    assert model.certificate_.rule == "binomial"
    assert model.certificate_.missingness_delta == 0.0
    assert model.certificate_.sensitivity is None


# The split of δ


def test_half_of_delta_is_for_phi_or_a_part_that_was_chosen():
    X, y, learned, truth = problem()
    assert certified(learned).fit(X, y).certificate_.missingness_delta == 0.05
    model = certified(learned, missingness_delta=0.02).fit(X, y)
    assert model.certificate_.missingness_delta == 0.02
    assert model.certificate_.to_dict()["missingness_delta"] == 0.02
    # A known φ takes no part.
    known = certified(truth, missingness_delta=0.02).fit(X, y)
    assert known.certificate_.missingness_delta == 0.0
    assert known.threshold_ == certified(truth).fit(X, y).threshold_


# In words and as data


def test_the_certificate_says_that_phi_was_learned():
    X, y, learned, truth = problem()
    text = str(certified(truth).fit(X, y).certificate_)
    assert "learned" not in text
    assert "this probability, φ, is that of LogisticMissingness(" in text
    text = str(certified(learned, odds_factor=1.25).fit(X, y).certificate_)
    assert "odds may be up to 1.25 times as large or small" in text
    assert "Of delta, 0.05 is kept for φ being worse" in text
    assert "log-odds of being missing are linear" in text
    assert "drawn at random among the missing" in text
    assert "the worst φ that is left possible" in text
    assert "LearnedMissingness" not in text


# The cap


def test_rows_that_may_weigh_more_than_the_cap_get_the_controlled_class():
    X, y, learned, _ = problem(slope=2.0)
    model = certified(learned, rule="thinning").fit(X, y)
    cap = model.calibration_.trust.cap
    assert cap is not None
    rows = np.linspace(-3.0, 6.0, 400)[:, None]
    _, heaviest = complete_row_weight_edges(rows, learned, delta=0.05)
    beyond = heaviest > cap
    assert beyond.any()
    scores = model.score_samples(rows)
    assert ((scores == -np.inf) == beyond).all()
    assert (model.predict(rows)[beyond] == 0).all()
    decision = model.decision_function(rows)
    assert (model.predict(rows) == (decision > 0)).all()
    reachable = model.predict(rows[~beyond])
    assert (reachable == (rows[~beyond, 0] > model.threshold_)).all()
    share = f"go missing with probability above {1 - 1 / cap:.3g}"
    assert share in str(model.certificate_)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.filterwarnings("ignore::missratio.classifier.NoPowerWarning")
def test_rows_where_phi_rounds_to_one_get_the_controlled_class(learned):
    # Far beyond all rows of the controlled class; the other class may be there.
    X, y, model, truth = problem(slope=3.0, intercept=-3.0)
    X[y == 1] += 30.0
    phi = model if learned else truth
    fitted = certified(phi, rule="thinning").fit(X, y)
    assert fitted.predict([[500.0]]).tolist() == [0]
    assert fitted.score_samples([[500.0]]).tolist() == [-np.inf]


# Ways to get there


def test_an_estimator_that_is_fitted_already_is_calibrated():
    X, y, learned, _ = problem()
    rows = X[y == 0]
    model = certified(learned).set_params(estimator=Total().fit(X, y))
    alone = model.calibrate(rows[:2000]).certificate_
    assert alone.rule == "flipped-betting"
    assert alone.missingness_delta == 0.05
    # With training rows bets can be tuned, and a cap chosen for rules that need one.
    model.calibrate(rows[:2000], X0_training=rows[2000:])
    assert model.certificate_.rule in ("tuned-betting", "thinning")
    model.set_params(rule="thinning").calibrate(rows[:2000], X0_training=rows[2000:])
    assert model.certificate_.certified
    with pytest.raises(ValueError, match="needs the largest missing probability"):
        model.calibrate(rows[:2000])


# Every φ of a region has its say, and costs no more than need be.


@pytest.mark.parametrize(
    ("d", "rowwise", "seed"),
    [(1, True, 0), (1, False, 0), (2, False, 0), (2, False, 1)],
)
def test_no_phi_of_the_region_asks_for_a_larger_threshold(d, rowwise, seed):
    X, y, given, _ = learned(2000, d, 100, seed, rowwise, intercept=-1.0)
    # A rule that draws nothing, so that samples made again are the same.
    model = certified(given, alpha=0.3, rule="bernstein").fit(X, y)
    calibration, held = model.calibration_, X[model.calibration_index_]
    scores = np.where(np.isnan(held).any(axis=1), -np.inf, held.sum(axis=1))
    rng, asked = np.random.default_rng(0), []
    for k in range(len(given.region(0.05)[0]) if d == 1 else 150):
        points = [
            region[k if d == 1 else rng.integers(len(region))]
            for region in given.region(0.05)
        ]
        first, slope = np.array(points).T
        phi = mr.LogisticMissingness(first[0] if rowwise else first, slope, rowwise)
        trust = replace(calibration.trust, point=phi)
        sample = Weighted.by(replace(trust, point=None), held, scores).sample(trust)
        asked.append(calibration.rule.select(sample, 0.3, 0.05).threshold)
    assert model.threshold_ == pytest.approx(max(asked), rel=1e-4) or d > 1
    assert model.threshold_ >= max(asked)
    # Nor at other levels, among those that were kept for them.
    own = [each.threshold for each in calibration.select([0.15, 0.3, 0.6])]
    assert own == sorted(own, reverse=True)
    assert own[1] == model.threshold_


def test_a_region_of_many_dimensions_is_left_to_the_band():
    X, y, given, _ = learned(2000, 2, 100, rowwise=True, intercept=-1.0)
    model = certified(given, alpha=0.3, on_infeasible="reject_all").fit(X, y)
    assert model.calibration_.trust.point is None
    assert model.calibration_.sample.edges is not None


def weak_instruments(seed, rho, d=4, intercept=-1.2, slope=1.0, n=3000):
    """Rows of both classes, and others without a label; class 0 loses column 0."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.full((d, d), rho) + (1 - rho) * np.eye(d))
    X0 = rng.normal(size=(n, d)) @ root.T
    X1 = rng.normal(size=(1000, d)) @ root.T + 1.0
    log_odds = intercept + slope * X0[:, 0]
    X0[rng.uniform(size=n) < 1 / (1 + np.exp(-log_odds)), 0] = np.nan
    fresh = rng.normal(size=(20_000, d)) @ root.T
    return np.concatenate([X0, X1]), np.repeat([0, 1], [n, 1000]), fresh


def from_table(X, y, seed):
    known = mr.learn_missingness(X[y == 0])
    options = {"alpha": 0.1, "on_infeasible": "reject_all", "random_state": seed}
    return certified(known, **options).set_params(estimator=mr.KLIEP()).fit(X, y)


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
@pytest.mark.parametrize("seed", [7, 8, 12, 14])
def test_a_steep_phi_is_not_the_mildest_once_its_rows_are_out_of_reach(seed):
    # Tables in which the other columns say nothing of φ, and the φ that is worst over
    # all rows certifies an error of 0.13 and more.
    X, y, fresh = weak_instruments(seed, 0.0, 3, -0.5, 0.6)
    model = from_table(X, y, seed)
    assert (model.predict(fresh) == 1).mean() <= 0.1


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
def test_a_phi_of_the_region_may_give_an_observed_row_no_chance():
    X, y, fresh = weak_instruments(21, 0.2)
    model = from_table(X, y, 21)
    assert (model.predict(fresh) == 1).mean() <= 0.1
    assert model.threshold_ == pytest.approx(0.733163, rel=1e-4)


def test_it_costs_less_power_than_a_band_and_keeps_the_promise():
    alpha, repeats, z = 0.1, 15, np.linspace(-6, 6, 6001)[:, None]
    laws = [np.exp(-((z[:, 0] - shift) ** 2) / 2) for shift in (0.0, 1.5)]
    powers, broken = {"auto": [], "thinning": []}, 0
    for seed in range(repeats):
        X, y, given, _ = learned(2000, 1, 100, seed, intercept=-1.0, n1=1000)
        for rule, found in powers.items():
            options = {"delta": 0.05, "rule": rule, "on_infeasible": "reject_all"}
            model = certified(given, alpha=alpha, random_state=seed, **options)
            above = model.fit(X, y).predict(z) == 1
            error, power = ((above * law).sum() / law.sum() for law in laws)
            found.append(power)
            broken += error > alpha
        assert model.certificate_.missingness_delta == 0.025
    assert np.mean(powers["auto"]) > np.mean(powers["thinning"]) + 0.01
    assert broken <= 3
