"""φ as an expert states it: what words mean, and that certificates hold over it."""

import numpy as np
import pytest
from classifiers import certified
from data import equicorrelated, stacked
from optional_packages import optional
from scipy.stats import binom

import missratio as mr
from missratio.learning import Assumption, MissingnessWarning

pd = optional("pandas")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("x: 30%", ("x", 0.3, None, 1.0, 1.0)),
        ("x: 4.5 % of all, higher more likely", ("x", 0.045, None, 1.2, 3.0)),
        ("x: about 30% of sick", ("x", 0.3, "sick", 1.0, 1.0)),
        ("a: b: 30% of a, b, Higher slightly more likely.",
         ("a: b", 0.3, "a, b", 1.0, 1.5)),
        ("x y: 1% of 0, lower much more likely", ("x y", 0.01, "0", 1 / 8, 1 / 2)),
        ("x: 30%, higher 2 to 4 times more likely", ("x", 0.3, None, 2.0, 4.0)),
    ],
)  # fmt: skip
def test_words_have_a_meaning(text, meant):
    read = Assumption.read(text)
    found = read.column, read.share, read.label, read.least, read.most
    assert found == pytest.approx(meant)
    assert "log" not in read.sentence


@pytest.mark.parametrize(
    "text", ["x", "x: 30", "x: much", "x: 30% of sick, more likely", ": 30%", "30%"]
)
def test_what_cannot_be_read_is_told_the_form(text):
    with pytest.raises(ValueError, match=r"can't be read.*higher more likely"):
        Assumption.read(text)


def lossy(rng, n=1000, odds=1.9, share=0.3):
    """Three columns; the odds of the first to be missing grow with its observed SD."""
    Z = equicorrelated(rng, n, 3)
    slope = np.log(odds)
    for _ in range(3):
        phi = mr.LogisticMissingness.from_proportion(
            Z, [slope, 0.0, 0.0], [share, 0.0, 0.0]
        )
        X = mr.corrupt(Z, phi, np.random.default_rng(0))
        slope = np.log(odds) / np.nanstd(X[:, 0])
    return mr.corrupt(Z, phi, rng), phi


def holds(model, phi):
    """Whether the band of the first column holds φ."""
    grid = np.linspace(-2.5, 2.5, 11)[:, None] * [1.0, 0.0, 0.0]
    lower, upper = model.probability_band(grid, 0.05)
    truth = phi.missing_probability(grid)
    return bool(((lower <= truth) & (truth <= upper))[:, 0].all())


def assume(X, text="0: 30%, higher more likely"):
    return mr.learn_missingness(X, assumptions=[text], from_table=False)


def test_the_level_is_the_tables_and_the_slope_is_in_the_range():
    X, _ = lossy(np.random.default_rng(0))
    model, seen = assume(X), X[~np.isnan(X[:, 0]), 0]
    # Beyond three standard deviations it is as it is there.
    seen = np.clip(seen, *(seen.mean() + np.array([-3.0, 3.0]) * seen.std()))
    far, end = model.missing_probability([[9.0, 0.0, 0.0], [seen.max(), 0.0, 0.0]])
    assert far[0] == end[0]
    for end in (model, model.narrowed(0), model.narrowed(1)):
        log_odds = end.intercept[0] + end.coef[0] * seen
        assert np.exp(log_odds).sum() == pytest.approx(np.isnan(X[:, 0]).sum())
    factors = np.exp(model.region(0.05)[0][:, 1] * seen.std())
    assert (factors.min(), factors.max()) == pytest.approx((1.2, 3.0))
    assert model.stated == ("0",)
    assert model.narrowed(1).coef[0] > model.coef[0] > model.narrowed(0).coef[0] > 0.0


@pytest.mark.parametrize("odds", [1.2, 1.9, 3.0])
def test_the_band_holds_every_phi_of_the_range(odds):
    held, text = 0, "0: 30%, higher 1.1 to 3.3 times more likely"
    for seed in range(20):
        X, phi = lossy(np.random.default_rng([seed, int(10 * odds)]), odds=odds)
        held += holds(assume(X, text), phi)
    assert held >= binom.ppf(1e-3, 20, 0.95)


@pytest.mark.parametrize("repeats", [2, pytest.param(60, marks=pytest.mark.validity)])
@pytest.mark.parametrize(
    ("words", "odds"),
    [
        ("higher more likely", 1.25),
        ("higher more likely", 2.9),
        ("lower much more likely", 1 / 4),
    ],
)
def test_certificates_hold_wherever_the_slope_is_in_the_range(words, odds, repeats):
    broken = 0
    for seed in range(repeats):
        rng = np.random.default_rng([seed, int(100 * odds)])
        X0, _ = lossy(rng, odds=odds)
        X, y = stacked(X0, rng.normal(1.0, 1.0, (400, 3)))
        models = {0: assume(X0, f"0: 30%, {words}")}
        options = {"random_state": seed, "on_infeasible": "reject_all"}
        classifier = certified(mr.FDivergenceRatio("js"), missingness=models, **options)
        classifier.fit(X, y)
        fresh = equicorrelated(rng, 50_000, 3)
        broken += classifier.predict(fresh).mean() > 0.1
        said = str(classifier.certificate_)
        assert ("within what was stated" in said) == classifier.certificate_.certified
    assert broken <= binom.ppf(1 - 1e-3, repeats, 0.1)


def test_a_direction_that_other_columns_refute_is_refused():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4000, 1)) + 0.4 * rng.normal(size=(4000, 3))
    X = mr.corrupt(Z, mr.LogisticMissingness([-1.2, -np.inf, -np.inf], 1.5), rng)
    wrong = assume(X, "0: 30%, lower more likely")
    checks = mr.missingness_check(X, wrong, complete=True)
    assert {check.verdict for check in checks} != {"consistent"}
    with pytest.warns(MissingnessWarning, match="what was stated and the other"):
        mr.learn_missingness(X, assumptions=["0: 30%, lower more likely"])
    right = assume(X, "0: 30%, higher much more likely")
    checks = mr.missingness_check(X, right, complete=True)
    assert {check.verdict for check in checks} == {"consistent"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0: 60%, higher more likely", r"60% are stated.*the table has 3\d\.?\d?%"),
        ("1: 30%", "Nothing can be assumed of '1': none of its values is missing"),
        ("z: 30%", "assumptions names 'z'"),
        ("0: 30%, higher 3 to 2 times more likely", "1 ≤ A ≤ B"),
        ("0: 0%", "between 0% and 100%"),
    ],
)
def test_what_the_table_contradicts(text, message):
    X, _ = lossy(np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        assume(X, text)


@pytest.mark.parametrize("repeats", [3, pytest.param(40, marks=pytest.mark.validity)])
def test_a_long_tail_is_certified_where_the_truth_is_a_step(repeats):
    """Log-odds that are linear over ten standard deviations would explode."""
    broken = 0
    for seed in range(repeats):
        rng, y = np.random.default_rng(seed), np.repeat([0, 1], 1500)
        Z = equicorrelated(rng, 23_000, 5, 0.6)
        Z[1500:3000] += 1.0
        Z[:, 0] = np.exp(Z[:, 0])
        X, fresh = Z[:3000].copy(), Z[3000:]
        chance = np.where(X[:, 0] > np.quantile(X[:, 0], 0.8), 0.5, 0.05)
        X[rng.random(3000) < chance, 0] = np.nan
        models = {}
        for label in (0, 1):
            rows = X[y == label]
            share = 100.0 * np.isnan(rows[:, 0]).mean()
            text = f"0: {share:.3g}%, higher more likely"
            models[label] = mr.learn_missingness(rows, assumptions=[text], check=False)
        classifier = mr.NeymanPearsonClassifier(None, 0.1, 0.1, models, random_state=0)
        assert (classifier.fit(X, y).predict(Z[1500:3000]) == 1).mean() > 0.2
        broken += classifier.predict(fresh).mean() > 0.1
    assert broken <= binom.ppf(1 - 1e-3, repeats, 0.1)


def test_of_a_category_its_share_can_be_stated():
    rng = np.random.default_rng(0)
    level = rng.integers(3, size=900)
    table = {f"smoker={k}": (level == k).astype(float) for k in range(3)}
    X = pd.DataFrame({"age": rng.normal(size=900) + level, **table})
    X.loc[rng.random(900) < 0.2, list(table)] = np.nan
    model = mr.learn_missingness(X, assumptions=["smoker: 20%"], from_table=False)
    levels = np.column_stack([np.zeros(3), np.eye(3)])
    share = X["smoker=0"].isna().mean()
    assert model.missing_probability(levels)[:, 1:] == pytest.approx(share)
    lower, upper = model.probability_band(levels, 0.05)
    assert (lower[:, 1:] > 0.15).all()
    assert (lower[:, 1:] < 0.2).all()
    assert ((upper[:, 1:] > 0.2) & (upper[:, 1:] < 0.28)).all()
    with pytest.raises(ValueError, match="which has no higher values"):
        mr.learn_missingness(X, assumptions=["smoker: 20%, higher more likely"])


def test_other_columns_are_learned_beside_it():
    X, _ = lossy(np.random.default_rng(0), n=2000)
    X[np.random.default_rng(1).random(2000) < 0.2, 1] = np.nan
    with pytest.raises(ValueError, match=r"Column\(s\) 1 have missing values"):
        assume(X)
    model = mr.learn_missingness(X, assumptions=["0: 30%, higher more likely"])
    assert model.stated == ("0",)
    assert not any(check.failed for check in model.checks if check.feature == "0")
    assert abs(model.coef[1]) < 4 * model.standard_errors[1, 1]


def test_a_table_that_teaches_narrows_what_is_stated():
    text, narrower, held = "0: 30%, higher 1.1 to 4 times more likely", [], 0
    for seed in range(20):
        X, phi = lossy(np.random.default_rng([seed, 7]), n=3000)
        spread = np.nanstd(Assumption.read(text).clipped(X[:, :1]))
        widths = []
        for from_table in (False, True):
            model = mr.learn_missingness(
                X, assumptions=[text], from_table=from_table, check=False
            )
            slopes = model.region(0.05)[0][:, 1] * spread
            assert slopes.min() >= np.log(1.1) - 1e-9
            assert slopes.max() <= np.log(4.0) + 1e-9
            widths.append(np.ptp(slopes))
        narrower.append(widths[1] / widths[0])
        held += holds(model, phi)
    assert np.mean(narrower) < 0.7
    assert held >= binom.ppf(1e-3, 20, 0.95)
