"""Certificates under a learned φ: the split of δ, the cap, and what they say."""

import json
import pickle

import numpy as np
import pytest
from optional_packages import optional
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.estimator_checks import check_estimator

import missratio as mr
from missratio.classifier.promise import Trust, Weighted
from missratio.missingness import LogisticMissingness, StepMissingness
from missratio.threshold import CalibrationSample, make_rule
from missratio.weights import complete_row_weight_edges, complete_row_weights

# One table in twenty casts doubt on a right φ.
pytestmark = pytest.mark.filterwarnings("ignore:The data cast doubt")

pd = optional("pandas")

UNBOUNDED = ("auto", "flipped-betting", "tuned-betting")
BOUNDED = ("paper", "bernstein", "hoeffding-bentkus", "thinning", "betting")


class Total(ClassifierMixin, BaseEstimator):
    """Scores rows by the sum of their columns, whatever it is fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X, dtype=float).sum(axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def problem(n=3000, d=1, m=200, seed=0, rowwise=False, slope=1.0, intercept=-1.5):
    """Class 0, which loses values, complete class 1, and φ⁰ learned from class 0."""
    rng = np.random.default_rng(seed)
    Z0, X1 = rng.normal(size=(n, d)), rng.normal(1.5, 1.0, (400, d))
    coef = np.full(d, slope) if rowwise else slope
    truth = LogisticMissingness(intercept, coef, rowwise)
    X0 = mr.corrupt(Z0, truth, rng)
    revealed = np.full_like(X0, np.nan)
    for j in range(1 if rowwise else d):
        columns = slice(None) if rowwise else j
        chosen = rng.permutation(np.flatnonzero(np.isnan(X0[:, j])))[:m]
        revealed[chosen, columns] = Z0[chosen, columns]
    learned = mr.learn_missingness(X0, revealed, rowwise=rowwise)
    X, y = np.concatenate([X0, X1]), np.repeat([0, 1], [n, len(X1)])
    return X, y, learned, truth


def certified(model, **options):
    options = {"alpha": 0.2, "delta": 0.1, "random_state": 0} | options
    return mr.NeymanPearsonClassifier(Total(), missingness={0: model}, **options)


# What is certified


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


def test_ratios_are_fitted_with_a_learned_model_of_either_class():
    X, y, learned, _ = problem(d=2, slope=0.7)
    rng = np.random.default_rng(1)
    of_other = LogisticMissingness(-2.0, 0.5)
    X[y == 1] = mr.corrupt(X[y == 1], of_other, rng)
    model = mr.NeymanPearsonClassifier(
        mr.NaiveBayesRatio(mr.KLIEP()),
        alpha=0.2,
        delta=0.1,
        missingness={0: learned, 1: of_other},
        random_state=0,
    ).fit(X, y)
    assert model.certificate_.certified
    assert model.certificate_.missingness_delta == 0.05
    assert (np.unique(model.predict(rng.normal(size=(500, 2)))) == [0, 1]).all()


def test_more_values_looked_up_certify_more():
    powers = {}
    for m in (15, 400):
        each = []
        for seed in range(4):
            X, y, learned, _ = problem(m=m, seed=seed)
            model = certified(learned, on_infeasible="reject_all").fit(X, y)
            other = np.random.default_rng(seed).normal(1.5, 1.0, (4000, 1))
            each.append(model.predict(other).mean())
        powers[m] = np.mean(each)
    assert powers[15] < powers[400]


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


def test_half_of_delta_is_for_phi():
    X, y, learned, truth = problem()
    model = certified(learned).fit(X, y)
    assert model.certificate_.missingness_delta == 0.05
    assert model.certificate_.delta == 0.1
    assert certified(truth).fit(X, y).certificate_.missingness_delta == 0.0


def test_the_part_for_phi_can_be_chosen():
    X, y, learned, truth = problem()
    model = certified(learned, missingness_delta=0.02).fit(X, y)
    assert model.certificate_.missingness_delta == 0.02
    # A known φ takes no part.
    known = certified(truth, missingness_delta=0.02).fit(X, y)
    assert known.certificate_.missingness_delta == 0.0
    assert known.threshold_ == certified(truth).fit(X, y).threshold_


@pytest.mark.parametrize("part", [0.0, 0.1, 0.2, -0.1, float("nan")])
def test_the_part_is_within_delta(part):
    X, y, learned, _ = problem(300)
    with pytest.raises(ValueError, match=r"strictly between 0 and 0\.1"):
        certified(learned, missingness_delta=part).fit(X, y)


@pytest.mark.parametrize("factor", [0.5, 0.0, -1.0, np.inf, float("nan")])
def test_an_odds_factor_is_one_or_more(factor):
    X, y, learned, _ = problem(300)
    with pytest.raises(ValueError, match="odds_factor must be 1 or more"):
        certified(learned, odds_factor=factor).fit(X, y)


def test_every_phi_of_the_part_for_phi_has_its_say():
    # By hand: the largest threshold that any φ of the region at that level asks for.
    X, y, learned, _ = problem()
    X0 = X[y == 0]
    model = certified(learned, missingness_delta=0.03, rule="flipped-betting").fit(X, y)
    held = X[model.calibration_index_]
    scores = np.where(np.isnan(held[:, 0]), -np.inf, held[:, 0])
    rule, asked = make_rule("flipped-betting"), []
    for intercept, slope in learned.region(0.03)[0]:
        weights = complete_row_weights(held, LogisticMissingness(intercept, slope))
        sample = CalibrationSample.build(scores, weights)
        asked.append(rule.select(sample, 0.2, 0.07).threshold)
    assert model.threshold_ == pytest.approx(max(asked), rel=1e-5)
    # A band, which takes the worst φ anew in every row, asks for more.
    edges = complete_row_weight_edges(held, learned, delta=0.03)
    weights = complete_row_weights(held, learned)
    sample = CalibrationSample.build(scores, weights, None, edges)
    assert model.threshold_ < rule.select(sample, 0.2, 0.07).threshold
    assert len(held) == len(X0) // 2


# In words and as data


def test_the_certificate_says_that_phi_was_learned():
    X, y, learned, _ = problem()
    text = str(certified(learned).fit(X, y).certificate_)
    assert "Of delta, 0.05 is kept for φ being worse" in text
    assert "log-odds of being missing are linear" in text
    assert "drawn at random among the missing" in text
    assert "values leave possible" in text
    assert "LearnedMissingness" not in text


def test_the_certificate_of_a_known_phi_does_not():
    X, y, _, truth = problem()
    text = str(certified(truth).fit(X, y).certificate_)
    assert "learned" not in text
    assert "this probability, φ, is that of LogisticMissingness(" in text


def test_the_certificate_says_for_which_odds_it_holds():
    X, y, learned, _ = problem()
    model = certified(learned, odds_factor=1.25).fit(X, y)
    assert "odds may be up to 1.25 times as large or small" in str(model.certificate_)


def test_the_certificate_is_plain_data():
    X, y, learned, _ = problem()
    certificate = certified(learned).fit(X, y).certificate_
    data = json.loads(json.dumps(certificate.to_dict()))
    assert data["missingness_delta"] == 0.05
    assert data["sensitivity"] == certificate.sensitivity
    assert data["delta"] == 0.1


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
    assert (model.decision_function(rows)[beyond] == -np.inf).all()
    reachable = model.predict(rows[~beyond])
    assert (reachable == (rows[~beyond, 0] > model.threshold_)).all()
    share = f"go missing with probability above {1 - 1 / cap:.3g}"
    assert share in str(model.certificate_)


@pytest.mark.parametrize("controlled", [0, 1])
@pytest.mark.parametrize("rule", ["auto", "thinning"])
def test_predictions_and_decisions_agree(controlled, rule):
    X, y, learned, _ = problem(slope=2.0)
    labels = y if controlled == 0 else 1 - y
    model = certified(learned, rule=rule, controlled_class=controlled)
    model.set_params(missingness={controlled: learned}).fit(X, labels)
    rows = np.linspace(-4.0, 8.0, 500)[:, None]
    rows = np.concatenate([rows, [[np.nan], [model.threshold_]]])
    decided = (model.decision_function(rows) > 0).astype(int)
    assert (model.predict(rows) == decided).all()
    assert model.predict(rows)[-2] == controlled


@pytest.mark.parametrize("rule", BOUNDED)
@pytest.mark.parametrize("learned", [False, True])
def test_rules_that_need_a_bound_have_one_by_the_cap(rule, learned):
    X, y, model, truth = problem(20_000, m=2000, slope=1.0)
    phi = model if learned else truth
    assert phi.maximum is None
    fitted = certified(phi, rule=rule, on_infeasible="reject_all").fit(X, y)
    assert fitted.certificate_.rule == rule
    assert fitted.calibration_.trust.cap is not None
    if rule not in ("paper", "bernstein", "hoeffding-bentkus"):
        assert fitted.certificate_.certified


def test_a_phi_that_has_a_bound_gets_no_cap():
    X, y, _, _ = problem()
    rng = np.random.default_rng(0)
    step = StepMissingness(1.0, 0.0, 0.5)
    X[y == 0] = mr.corrupt(rng.normal(size=(3000, 1)), step, rng)
    model = certified(step).fit(X, y)
    assert model.calibration_.trust.cap is None
    assert "missing more often" not in str(model.certificate_)


def test_flipped_betting_does_without_a_cap():
    X, y, learned, _ = problem()
    assert (
        certified(learned, rule="flipped-betting").fit(X, y).calibration_.trust.cap
        is None
    )


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.filterwarnings("ignore::missratio.classifier.NoPowerWarning")
def test_rows_where_phi_rounds_to_one_get_the_controlled_class(learned):
    # Far beyond all rows of the controlled class; the other class may be there.
    X, y, model, truth = problem(slope=3.0, intercept=-3.0)
    X[y == 1] += 30.0
    phi = model if learned else truth
    fitted = certified(phi, rule="thinning").fit(X, y)
    assert fitted.predict([[500.0]]).tolist() == [0]
    assert fitted.decision_function([[500.0]]).tolist() == [-np.inf]


def test_weights_that_are_huge_are_no_obstacle():
    # A product of 1e26, where edges are kept below what can be summed and squared.
    phi = LogisticMissingness([30.0, 30.0], [0.1, 0.1])
    rows, trust = (
        Weighted(np.zeros((3, 2)), np.arange(3.0)),
        Trust(phi, odds_factor=2.0),
    )
    sample = rows.weighed(trust).sample(trust)
    assert (sample.low_weights <= sample.weights).all()
    assert (sample.weights <= sample.high_weights).all()
    assert sample.high_weights.max() == pytest.approx(1e15)


# Ways to get there


def test_an_estimator_that_is_fitted_already_is_calibrated():
    X, y, learned, _ = problem()
    rows = X[y == 0]
    estimator = Total().fit(X, y)
    model = mr.NeymanPearsonClassifier(
        estimator, alpha=0.2, delta=0.1, missingness={0: learned}, random_state=0
    )
    alone = model.calibrate(rows[:2000]).certificate_
    assert alone.rule == "flipped-betting"
    assert alone.missingness_delta == 0.05
    # With training rows a cap can be chosen, and with it rules that need a bound.
    model.calibrate(rows[:2000], rows[2000:])
    assert model.certificate_.rule in ("tuned-betting", "thinning")
    assert model.calibration_.trust.cap is not None
    model.set_params(rule="thinning").calibrate(rows[:2000], rows[2000:])
    assert model.certificate_.certified
    with pytest.raises(ValueError, match="needs the largest missing probability"):
        model.calibrate(rows[:2000])


def test_rows_as_observed_need_no_phi():
    X, y, learned, _ = problem()
    model = certified(learned, deployment="as-observed")
    model.set_params(estimator=Filled()).fit(X, y)
    assert model.certificate_.rule == "binomial"
    assert model.certificate_.missingness_delta == 0.0
    assert model.certificate_.sensitivity is None


class Filled(Total):
    def decision_function(self, X):
        return np.nan_to_num(np.asarray(X, dtype=float)).sum(axis=1)


def test_dataframes_are_certified_as_arrays_are():
    X, y, _, _ = problem(d=2, slope=0.7)
    frame = pd.DataFrame(X, columns=["a", "b"])
    rng = np.random.default_rng(0)
    lost = np.isnan(X[y == 0])
    revealed = np.where(lost & (np.cumsum(lost, axis=0) <= 100), 0.0, np.nan)
    revealed[~np.isnan(revealed)] = rng.normal(0.5, 1.0, 200)
    phi = mr.learn_missingness(X[y == 0], revealed)
    of_frame = mr.learn_missingness(
        frame[y == 0], pd.DataFrame(revealed, columns=["a", "b"])
    )
    thresholds = [
        certified(model).fit(table, y).threshold_
        for model, table in ((phi, X), (of_frame, frame))
    ]
    assert thresholds[0] == thresholds[1]


def test_a_learned_model_with_nothing_missing_certifies_too():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(400, 1)), rng.normal(1.5, 1.0, (400, 1))])
    y = np.repeat([0, 1], 400)
    learned = mr.learn_missingness(X[y == 0], np.full((400, 1), np.nan))
    assert certified(learned).fit(X, y).certificate_.certified


def test_a_fitted_classifier_is_cloned_and_pickled():
    X, y, learned, _ = problem()
    model = certified(learned, rule="thinning").fit(X, y)
    twin = pickle.loads(pickle.dumps(model))
    rows = np.linspace(-3.0, 6.0, 50)[:, None]
    assert (twin.score_samples(rows) == model.score_samples(rows)).all()
    again = clone(model).fit(X, y)
    assert again.threshold_ == model.threshold_


def test_too_few_rows_are_refused_with_what_is_needed():
    X, y, learned, _ = problem(60, m=5)
    with pytest.raises(ValueError, match="No threshold certifies"):
        certified(learned, alpha=0.01).fit(X, y)
    model = certified(learned, alpha=0.01, on_infeasible="reject_all").fit(X, y)
    assert model.certificate_.sensitivity is None
    assert (model.predict(X[-50:]) == 0).all()


def test_scikit_learns_checks_pass_with_an_odds_factor():
    model = mr.NeymanPearsonClassifier(
        mr.KLIEP(l2=0.1),
        alpha=0.2,
        delta=0.2,
        controlled_class=None,
        on_infeasible="reject_all",
        random_state=0,
        missingness_delta=0.1,
        odds_factor=1.5,
    )
    failed = check_estimator(model, on_fail=None, on_skip=None)
    names = {c["check_name"] for c in failed if c["status"] == "failed"}
    assert names <= {
        # By contract, as for the classifier without them.
        "check_estimators_nan_inf",
        "check_classifiers_one_label_sample_weights",
    }


# Edges of weights


def test_edges_are_the_weights_where_nothing_is_in_doubt():
    phi = LogisticMissingness([-1.0, 0.5], [1.0, -2.0])
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[::7, 1] = np.nan
    low, high = complete_row_weight_edges(X, phi, delta=None)
    assert low == pytest.approx(complete_row_weights(X, phi))
    assert (low == high).all()
    assert (low[::7] == 0.0).all()


@pytest.mark.parametrize("rowwise", [False, True])
def test_an_odds_factor_moves_the_odds_of_each_entry(rowwise):
    phi = LogisticMissingness(0.3, [1.0, -2.0], rowwise)
    X = np.random.default_rng(0).normal(size=(50, 2))
    odds = phi.missing_probability(X) / (1.0 - phi.missing_probability(X))
    low, high = complete_row_weight_edges(X, phi, delta=None, odds_factor=1.7)
    below, above = 1.0 + odds / 1.7, 1.0 + odds * 1.7
    if not rowwise:
        below, above = below.prod(axis=1), above.prod(axis=1)
    assert low == pytest.approx(below)
    assert high == pytest.approx(above)


def test_edges_of_a_learned_model_are_those_of_its_band():
    X, y, learned, _ = problem(d=2)
    rows = X[y == 0][:200]
    low, high = complete_row_weight_edges(rows, learned, delta=0.1)
    lower, upper = learned.probability_band(rows, 0.1)
    seen = ~np.isnan(rows).any(axis=1)
    assert low[seen] == pytest.approx((1 / (1 - lower)).prod(axis=1)[seen])
    assert high[seen] == pytest.approx((1 / (1 - upper)).prod(axis=1)[seen])
    assert (high[~seen] == 0.0).all()


def test_what_is_always_missing_weighs_as_much_as_can_be_summed():
    phi = LogisticMissingness(0.0, [1.0, 1.0])
    rows = np.array([[1000.0, 0.0], [1000.0, 1000.0], [0.0, np.nan]])
    low, high = complete_row_weight_edges(rows, phi, delta=None, odds_factor=2.0)
    assert np.isfinite(high).all()
    assert high[0] == high[1] == low[0] >= 1e15
    assert high[2] == 0.0


def test_trust_is_certain_only_in_what_is_known():
    phi = LogisticMissingness(0.0, 1.0)
    assert Trust(phi).is_certain
    assert not Trust(phi, odds_factor=1.5).is_certain
    assert not Trust(problem(200)[2], 0.05).is_certain
    assert Trust(None).bound(3) == 1.0
    assert Trust(phi).bound(3) is None
    assert Trust(phi, cap=7.0).bound(3) == 7.0
    assert Trust(StepMissingness(1.0, 0.0, 0.5), cap=7.0).bound(1) == 2.0
