"""What holds for every rule: validity, monotony, and indifference to what is no matter.

Validity is shown exactly: over a discrete law all outcomes of a sample are enumerated,
and the probability of those with an error above α is summed.
"""

import math
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import binom, kstest, norm

import missratio as mr
from missratio.threshold import (
    RULES,
    AutoRule,
    CalibrationSample,
    PaperRule,
    Rule,
    Selection,
    binomial_tail,
    check_rule,
    make_rule,
)
from missratio.threshold.betting import largest_tail, tune_bet
from missratio.threshold.rules import BernsteinRule

BOUND = 5.0
DETERMINISTIC = ["paper", "bernstein", "betting", "flipped-betting", "tuned-betting"]
DRAWING = ["thinning", "counting"]
WEIGHTED = [*DETERMINISTIC, *DRAWING, "auto"]


def mnar_sample(n, seed, ties=False):
    """N(0, 1) scores, lost with probability 0.8 above 0 and 0.3 below."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    phi = np.where(z > 0, 0.8, 0.3)
    weights = np.where(rng.uniform(size=n) < phi, 0.0, 1.0 / (1.0 - phi))
    return CalibrationSample.build(np.rint(2 * z) / 2 if ties else z, weights, BOUND)


TRAINING = mnar_sample(2000, seed=99)


def rule_named(name, training=TRAINING):
    return make_rule(name, training=training, complete=False)


def select(name, sample, alpha=0.2, delta=0.2):
    return rule_named(name).select(sample, alpha, delta)


def redrawn(sample, seed):
    """The same sample with other random numbers."""
    draws = np.random.default_rng(seed).uniform(size=sample.n_observed)
    return replace(sample, draws=draws)


def level(selection):
    """The threshold; +∞, which accepts no row, where there is none."""
    return math.inf if selection.threshold is None else selection.threshold


def rows_of(sample):
    """Scores, weights and draws with the missing rows, as `build` takes them."""
    missing = np.zeros(sample.n_rows - sample.n_observed)
    given = sample.values, sample.masses, sample.draws
    return [np.concatenate([each, missing]) for each in given]


def rebuilt(sample, change):
    """The sample of changed rows: `change` maps scores, weights and draws to others."""
    scores, weights, draws = change(*rows_of(sample))
    return CalibrationSample.build(
        scores, weights, BOUND, draws=draws, coin=sample.coin
    )


# Over the scores 0, 1, 2: mass, and missing probability. The error of a threshold
# below 2 is the mass at 2, just above α.
LAWS = {
    "lost up": ([0.3, 0.29, 0.41], [0.0, 0.0, 0.5]),
    "lost down": ([0.3, 0.29, 0.41], [0.5, 0.5, 0.0]),
    "lost alike": ([0.3, 0.29, 0.41], [0.5, 0.5, 0.5]),
    "not lost": ([0.3, 0.29, 0.41], [0.0, 0.0, 0.0]),
    "mostly lost": ([0.59, 0.0, 0.41], [0.6, 0.0, 0.8]),
    "tied in one": ([0.01, 0.0, 0.99], [0.2, 0.0, 0.5]),
}


def compositions(total, parts):
    """All ways to put total rows into so many places."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        edges = [-1, *bars, total + parts - 1]
        yield [b - a - 1 for a, b in pairwise(edges)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_the_promise_is_broken_with_probability_delta_at_most(name, law):
    alpha, delta, n = 0.4, 0.25, 12
    mass, phi = (np.array(values) for values in LAWS[law])
    weights = 1.0 / (1.0 - phi)
    places = np.append(mass * (1.0 - phi), (mass * phi).sum())
    rng = np.random.default_rng(0)
    scores = rng.choice(4, p=places, size=500)
    training = CalibrationSample.build(
        scores, np.append(weights, 0.0)[scores], weights.max()
    )
    rule = rule_named(name, training)
    broken = 0.0
    for counts in compositions(n, 4):
        used = np.array(counts) > 0
        if (places[used] == 0.0).any() or not used[:3].any():
            continue
        sample = CalibrationSample.build(
            np.repeat([0.0, 1.0, 2.0, np.nan], counts),
            np.repeat([*weights, 0.0], counts),
            weights.max(),
        )
        chosen = rule.select(sample, alpha, delta)
        if level(chosen) < 2.0:
            ways = gammaln(n + 1) - gammaln(np.array(counts) + 1).sum()
            ways += (np.array(counts)[used] * np.log(places[used])).sum()
            broken += math.exp(ways)
    assert broken <= delta


def test_the_enumeration_can_tell_a_broken_rule():
    alpha, n = 0.4, 12
    mass, phi = (np.array(values) for values in LAWS["lost up"])
    # Without weights the rows of score 2 are too few, and the binomial rule is fooled.
    share = mass[2] * (1 - phi[2]) / (mass * (1 - phi)).sum()
    lost = (mass * phi).sum()
    broken = 0.0
    for n_observed in range(1, n + 1):
        n_tail = binomial_tail(n_observed, alpha, 0.25)
        weight = math.comb(n, n_observed) * (1 - lost) ** n_observed
        weight *= lost ** (n - n_observed)
        broken += weight * binom.cdf(n_tail, n_observed, share)
    assert broken > 0.4


@pytest.mark.parametrize("name", DETERMINISTIC)
@settings(max_examples=30)
@given(st.integers(20, 400), st.integers(0, 2**32), st.booleans(), st.data())
def test_raising_a_score_never_lowers_the_threshold(name, n, seed, ties, data):
    sample = mnar_sample(n, seed, ties)
    scores, weights, _ = rows_of(sample)
    before = level(select(name, sample, 0.4, 0.4)) if sample.n_observed else math.inf
    row = data.draw(st.integers(0, n - 1))
    scores[row] += data.draw(st.sampled_from([0.5, 1.0, 5.0]))
    raised = CalibrationSample.build(scores, weights, BOUND)
    after = level(select(name, raised, 0.4, 0.4)) if sample.n_observed else math.inf
    assert after >= before


@pytest.mark.parametrize("name", DETERMINISTIC)
@settings(max_examples=30)
@given(st.integers(20, 400), st.integers(0, 2**32), st.booleans())
def test_a_heaviest_row_on_top_lowers_no_threshold_below_it(name, n, seed, ties):
    sample = mnar_sample(n, seed, ties)
    if sample.n_observed == 0:
        return
    scores, weights, _ = rows_of(sample)
    more = CalibrationSample.build(
        np.append(scores, sample.ranked.scores[0] + 1.0),
        np.append(weights, BOUND),
        BOUND,
    )
    # A bet is tuned for one number of rows: it is the same here within rounding only.
    if name == "tuned-betting":
        bet = tune_bet(TRAINING, 0.4, 0.4, n, BOUND).bet
        tails = [largest_tail(s, [bet], 0.4, 0.4) for s in (sample, more)]
        before, after = (
            s.threshold(t) if t >= 0 else math.inf
            for s, t in zip((sample, more), tails, strict=True)
        )
    else:
        before = level(select(name, sample, 0.4, 0.4))
        after = level(select(name, more, 0.4, 0.4))
    # Where nothing was certified it may be now, with no row above.
    assert after >= min(before, more.ranked.scores[0])


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", WEIGHTED)
def test_the_order_of_the_rows_is_no_matter(name, ties):
    for seed in range(5):
        sample = mnar_sample(1000, seed, ties)
        order = np.random.default_rng(seed).permutation(1000)
        permuted = rebuilt(sample, lambda *rows, o=order: [each[o] for each in rows])
        assert select(name, permuted) == select(name, sample)


@pytest.mark.parametrize("transform", [np.exp, np.arctan, lambda s: 3 * s - 2])
@pytest.mark.parametrize("name", WEIGHTED)
def test_an_increasing_transform_of_the_scores_transforms_the_threshold(
    name, transform
):
    sample = mnar_sample(1000, seed=1)
    transformed = rebuilt(sample, lambda scores, *rest: (transform(scores), *rest))
    chosen, image = select(name, sample), select(name, transformed)
    if chosen.threshold is None:
        assert image.threshold is None
    else:
        assert image.threshold == transform(chosen.threshold)


# A bet is tuned for one δ, and is another for another.
@pytest.mark.parametrize("name", [*DETERMINISTIC[:-1], *DRAWING])
@settings(max_examples=20)
@given(st.integers(100, 2000), st.integers(0, 2**32), *[st.floats(0.01, 0.4)] * 2)
def test_a_smaller_delta_never_lowers_the_threshold(name, n, seed, one, other):
    sample = mnar_sample(n, seed)
    if sample.n_observed:
        low, high = sorted([one, other])
        strict = level(select(name, sample, delta=low))
        assert strict >= level(select(name, sample, delta=high))


def test_the_papers_rule_is_its_lemma_and_the_printed_algorithm_1_is_stricter():
    """By one order statistic at most: it sums from the threshold on."""
    n, alpha, delta = 20_000, 0.3, 0.1
    sample = mnar_sample(n, seed=3)
    margin = math.sqrt(16 * math.log(1 / delta) / (n / BOUND))
    assert PaperRule().margin(alpha, delta, n / BOUND) == pytest.approx(margin)
    scores = sample.ranked.scores
    sums = np.append(0.0, np.cumsum(sample.ranked.weights)) / n
    chosen = select("paper", sample, alpha, delta).threshold
    assert chosen == scores[sums[:-1] <= alpha - margin].min()
    printed = scores[sums[1:] <= alpha - margin].min()
    assert np.count_nonzero((scores >= chosen) & (scores < printed)) == 1


def test_bernsteins_margin_is_the_papers_times_the_root_of_an_eighth_of_alpha():
    paper, bernstein = PaperRule(), BernsteinRule()
    for alpha in (0.01, 0.1, 0.5):
        ratio = bernstein.margin(alpha, 0.05, 100.0) / paper.margin(alpha, 0.05, 100.0)
        assert ratio == pytest.approx(math.sqrt(alpha / 8))


@pytest.mark.parametrize("name", [*WEIGHTED[:3], *DRAWING])
def test_complete_rows_need_no_weights(name):
    scores = np.random.default_rng(0).normal(size=20_000)
    complete = CalibrationSample.build(scores)
    if name in DRAWING:
        exact = make_rule("binomial", complete=True).select(complete, 0.2, 0.2)
        assert select(name, complete).threshold == exact.threshold
    else:
        weighted = CalibrationSample.build(scores, np.ones(len(scores)), 1.0)
        assert select(name, complete) == select(name, weighted)


def test_the_rows_that_thinning_keeps_are_distributed_as_complete_ones():
    samples = [redrawn(mnar_sample(5000, seed), seed) for seed in range(20)]
    kept = [sample.ranked.scores[sample.kept(BOUND)[1]] for sample in samples]
    assert kstest(np.concatenate(kept), norm.cdf).pvalue > 0.001
    observed = np.concatenate([sample.ranked.scores for sample in samples])
    assert kstest(observed, norm.cdf).pvalue < 1e-6
    # One in B rows is kept, whatever φ is elsewhere.
    sizes = np.array([len(scores) for scores in kept])
    assert abs(sizes.mean() - 1000) < 4 * math.sqrt(800 / 20)


def test_the_number_that_is_counted_is_binomial_of_all_rows():
    # Bin(n, μ/B): of all rows, though most are missing, and whatever φ is elsewhere.
    cut, n, repeats = 0.5, 200, 2000
    counts = []
    for seed in range(repeats):
        sample = redrawn(mnar_sample(n, seed), seed)
        kept = sample.kept(BOUND)[1]
        counts.append(np.count_nonzero(kept & (sample.ranked.scores > cut)))
    share = norm.sf(cut) / BOUND
    assert abs(np.mean(counts) - n * share) < 4 * math.sqrt(n * share / repeats)
    variance = n * share * (1 - share)
    assert abs(np.var(counts) / variance - 1) < 4 * math.sqrt(2 / repeats)


def test_counting_needs_no_weights_below_the_threshold():
    # Rows that may weigh more than the bound, and have no score, change nothing.
    def heavier(scores, weights, draws):
        low = scores < 0
        return np.where(low, -np.inf, scores), weights * np.where(low, 100, 1), draws

    sample = mnar_sample(500, seed=0)
    capped = rebuilt(sample, heavier)
    assert select("counting", capped) == select("counting", sample)


@pytest.mark.parametrize("name", ["flipped-betting", "tuned-betting", "auto"])
def test_other_rules_need_no_bound(name):
    bounded = mnar_sample(20_000, seed=0)
    scores, weights, _ = rows_of(bounded)
    assert select(name, CalibrationSample.build(scores, weights)).threshold is not None


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(["up", "down", "all equal"]))
def test_what_auto_chooses_depends_on_no_calibration_score(seed, scores):
    rng = np.random.default_rng(seed)
    expected = rule_named("auto").choose(800, BOUND, 0.2, 0.2)[0].name
    values = {
        "up": rng.exponential(size=800),
        "down": -rng.exponential(size=800),
        "all equal": np.zeros(800),
    }[scores]
    weights = rng.choice([0.0, 1.0, BOUND], size=800)
    sample = CalibrationSample.build(values, weights, BOUND)
    assert select("auto", sample).rule == expected


def test_auto_without_training_rows_takes_what_needs_none():
    for training in (None, CalibrationSample.build([1.0], [0.0], 2.0)):
        rule = AutoRule(training, complete=False)
        assert rule.choose(1000, 2.0, 0.1, 0.1)[0].name == "thinning"
        assert rule.choose(20, 2.0, 0.1, 0.1)[0].name == "counting"
        flipped, root = rule.choose(100, None, 0.1, 0.1)
        # Of which nothing is known, and so nothing expected.
        assert (flipped.name, root) == ("flipped-betting", 0.0)
    rule = make_rule("auto", training=TRAINING, complete=True)
    assert rule.choose(100, 1.0, 0.1, 0.1)[0].name == "binomial"


UNBOUNDED = CalibrationSample.build([1.0, 2.0], [1.0, 2.0])
LOST = CalibrationSample.build([1.0], [0.0], 2.0)


@pytest.mark.parametrize(
    ("name", "training", "message"),
    [
        *((name, TRAINING, "largest missing probability.*flipped-betting")
          for name in (*DETERMINISTIC[:3], *DRAWING)),
        ("tuned-betting", None, "there are none"),
        ("tuned-betting", LOST, "there are none"),
        ("thining", TRAINING, "Did you mean 'thinning'"),
    ],
)  # fmt: skip
def test_what_a_rule_lacks_is_said(name, training, message):
    with pytest.raises(ValueError, match=message):
        rule_named(name, training).select(UNBOUNDED, 0.2, 0.2)


class Cautious(Rule):
    """A rule of one's own: a share of what bernstein allows."""

    def __init__(self, share=0.5):
        self.share = share

    def select(self, sample, alpha, delta):
        allowed = BernsteinRule().select(sample, self.share * alpha, delta)
        return replace(allowed, rule=self.name)


def test_a_rule_may_be_ones_own():
    rule = Cautious()
    assert make_rule(rule, training=TRAINING, complete=False) is rule
    assert rule.select(TRAINING, 0.4, 0.1).rule == "Cautious"
    # As a search sets it.
    model = mr.NeymanPearsonClassifier(rule=rule).set_params(rule__share=0.2)
    assert model.rule.share == 0.2
    model.set_params(rule__share=0.5)
    assert rule.least_rows(0.2, 0.1, 2.0) == BernsteinRule().least_rows(0.1, 0.1, 2.0)
    with pytest.raises(ValueError, match="must be one of"):
        make_rule(Cautious, training=None, complete=False)


@pytest.mark.parametrize("name", WEIGHTED)
def test_where_nothing_is_observed_nothing_is_certified(name):
    sample = CalibrationSample.build(np.full(50_000, np.nan), np.zeros(50_000), 2.0)
    assert select(name, sample, 0.3, 0.3).threshold is None


# A rule of one's own is tried out, and what is wrong with it is said.


DIGITS = """
bernstein nan nan nan   1.6731 1.1391 0.70015
betting nan nan nan   1.7523 1.2188 0.80004
flipped-betting nan nan nan   nan nan 0.66866
tuned-betting 0.33006 0.13142 0.11829   1.6078 1.1309 0.58533
thinning 0.39907 0.28952 nan   1.5823 1.1096 0.58897
counting 0.39508 0.27796 nan   1.5607 1.0171 0.57961
auto 0.36682 0.25808 0.11829   1.5607 1.0171 0.58533
"""


@pytest.mark.parametrize("line", DIGITS.strip().splitlines())
def test_what_is_expected_and_certified_keeps_its_digits(line):
    """Of 900 rows, 100, and of a weight without a bound; odds may be wrong by 1.2."""
    samples = []
    for sample in (mnar_sample(900, 1), TRAINING):
        low, high = (1.0 + (sample.masses - 1.0) * x for x in (1.0 / 1.2, 1.2))
        samples.append(replace(sample, edges=(low, high), bound=6.0))
    rule, *digits = line.split()
    rule = rule_named(rule, samples[1])
    sizes = (900, 6.0), (100, 6.0), (900, None)
    found = [rule.expected_root(*size, 0.2, 0.1) for size in sizes]
    found += [rule.select(samples[0], x, 0.1).threshold for x in (0.1, 0.2, 0.4)]
    expected = pytest.approx([*map(float, digits)], rel=1e-4, nan_ok=True)
    assert np.array(found, dtype=float) == expected


@pytest.mark.parametrize("name", RULES)
def test_every_rule_of_the_package_passes(name):
    broken = check_rule(name, repeats=60)
    assert max(broken.values()) < 0.25
    # The binomial rule is for complete rows alone.
    assert len(broken) == (1 if name == "binomial" else 4)
    if name == "counting":
        assert [round(60 * share) for share in broken.values()] == [3, 5, 6, 2]


def chosen(threshold):
    return Selection(float(threshold), "own", 0.1)


def refuse(self, sample, alpha, delta):
    raise ValueError("not today")


WRONG = {
    "breaks its promise: where nothing is missing, .* in 3.% of 300": (
        lambda self, s, alpha, delta: chosen(np.quantile(s.values, 1 - alpha))
    ),
    "breaks its promise: where high scores are missing": (
        lambda self, s, alpha, delta: chosen(np.quantile(s.values, 1 - alpha / 2))
    ),
    "depends on the order of rows": lambda self, s, *_: chosen(s.values[:50].max()),
    "falls when some scores rise": (
        lambda self, s, *_: chosen(1.0 - 0.01 * np.mean(s.values))
    ),
    "nothing to check": refuse,
    "must return a Selection.*: got float": lambda *_: 0.9,
    "or a Rule: got <class": Rule,
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(message):
    rule = WRONG[message]
    if rule is not Rule:
        rule = type("Own", (Rule,), {"name": "own", "select": rule})()
    with pytest.raises((TypeError, ValueError), match=message):
        check_rule(rule)
