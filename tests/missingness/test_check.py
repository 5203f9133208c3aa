"""A table contradicts a wrong φ, and hardly ever a right one."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
from data import equicorrelated, lost_and_looked_up
from scipy.special import expit, logsumexp
from scipy.stats import binom
from sklearn.preprocessing import StandardScaler

import missratio as mr
from missratio.learning import Check
from missratio.missingness import (
    MissingnessContradictionError,
    MissingnessContradictionWarning,
)
from missratio.missingness.check import (
    check_weights,
    refuse_contradiction,
    warn_of_contradiction,
    weight_evidence,
)


def column(rng, n, discrete):
    """Normal, skewed, heavy-tailed, bounded or two-humped; or discrete."""
    return [
        lambda: rng.normal(size=n),
        lambda: rng.lognormal(0, rng.uniform(0.3, 1.2), n),
        lambda: rng.standard_t(3, n),
        lambda: rng.uniform(-1.7, 1.7, n),
        lambda: rng.normal(size=n) + rng.uniform(0, 4) * (rng.random(n) < 0.3),
        lambda: rng.poisson(rng.uniform(0.5, 5), n).astype(float),
        lambda: (rng.random(n) < rng.uniform(0.1, 0.9)).astype(float),
    ][rng.integers(7 if discrete else 5)]()


def right_table(rng, largest_n, steepest, discrete=True):
    """A table that lost values by φ, and φ: logistic, or bounded below one."""
    n = int(np.exp(rng.uniform(np.log(20), np.log(largest_n))))
    d = int(rng.integers(1, 5))
    Z = np.column_stack([column(rng, n, discrete) for _ in range(d)])
    Z[:, 1:] += rng.uniform(0, 1) * Z[:, :1]
    slopes = np.exp(rng.uniform(np.log(0.1), np.log(steepest), d))
    slopes *= rng.choice([-1, 1], d) / np.maximum(Z.std(axis=0), 1e-9)
    rowwise = rng.random() < 0.3
    ceiling = rng.uniform(0.3, 0.95) if rng.random() < 0.5 else 1.0
    if rowwise:
        centre = np.quantile(Z @ slopes, rng.uniform(0.05, 0.95))
        log_odds = Z @ slopes - centre
    else:
        centre = np.quantile(Z * slopes, rng.uniform(0.05, 0.95), axis=0)
        log_odds = Z * slopes - centre
    X = Z.copy()
    X[rng.random(log_odds.shape) < ceiling * expit(log_odds)] = np.nan
    if ceiling == 1.0:
        intercept = float(-centre) if rowwise else -centre
        return X, mr.LogisticMissingness(intercept, slopes, rowwise=rowwise)

    def phi(X):
        at = (X @ slopes if rowwise else X * slopes) - centre
        return ceiling * expit(at)

    return X, mr.FunctionMissingness(phi, rowwise=rowwise, maximum=ceiling)


@pytest.mark.parametrize(
    ("tables", "largest_n", "steepest", "seed", "level"),
    [
        (400, 2000, 40.0, 0, 0.05),
        *(
            pytest.param(*sizes, 2, level, marks=pytest.mark.validity)
            for level in (0.05, 0.001)
            for sizes in ((15_000, 1000, 40.0), (10_000, 1000, 3.0), (400, 10**5, 40.0))
        ),
    ],
)
def test_a_right_phi_is_contradicted_as_rarely_as_promised(
    tables, largest_n, steepest, seed, level
):
    """Contradictions are false in `level` of right tables at most; and shortfalls."""
    rng = np.random.default_rng(seed)
    verdicts = []
    for _ in range(tables):
        X, phi = right_table(rng, largest_n, steepest)
        checks = mr.missingness_check(X, phi, level=level, complete=True)
        verdicts.append({check.verdict for check in checks})
    found = sum("contradiction" in each for each in verdicts)
    assert found <= binom.ppf(1 - 1e-4, tables, level)


def test_a_right_phi_that_leaves_no_values_out_has_no_shortfall():
    rng = np.random.default_rng(1)
    for _ in range(300):
        X, phi = right_table(rng, 2000, 1.5, discrete=False)
        checks = mr.missingness_check(X, phi, complete=True)
        assert {check.verdict for check in checks} == {"consistent"}


@pytest.mark.validity
def test_shortfalls_are_false_alarms_once_in_a_thousand():
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(8000):
        X, phi = right_table(rng, 2000, 2.0, discrete=False)
        checks = mr.missingness_check(X, phi, complete=True)
        found += any(check.verdict != "consistent" for check in checks)
    assert found <= binom.ppf(1 - 1e-4, 8000, 0.001)


def test_a_level_that_is_broken_is_noticed(monkeypatch):
    # Missing rows that cost a bet nothing leave too much evidence.
    monkeypatch.setattr("missratio.missingness.check._LOG_STAKES", np.zeros(14))
    with pytest.raises(AssertionError):
        test_a_right_phi_is_contradicted_as_rarely_as_promised(400, 2000, 40.0, 0, 0.05)


MIRRORED = mr.LogisticMissingness(0.0, [-1.5])
THREE_TENTHS = math.log(3 / 7)


def mirrored(rng, n):
    Z = rng.normal(size=(n, 1))
    return mr.corrupt(Z, mr.LogisticMissingness(0.0, [1.5]), rng), MIRRORED


CONSTANT = mr.LogisticMissingness(THREE_TENTHS, [0.0])
FUNCTION = mr.FunctionMissingness(lambda X: np.full(X.shape, 0.3), rowwise=False)


def wrong_share(rng, n, phi=CONSTANT):
    return np.where(rng.random((n, 1)) < 0.7, np.nan, rng.normal(size=(n, 1))), phi


def scaled(rng, n, sign):
    phi = mr.LogisticMissingness(-sign * 8.0, [sign / 15.0])
    X = mr.corrupt(rng.normal(120.0, 15.0, size=(n, 1)), phi, rng)
    return StandardScaler().fit_transform(X), phi


def together(rng, n):
    X = rng.normal(size=(n, 3))
    X[rng.random(n) < 0.3, :2] = np.nan
    return X, mr.LogisticMissingness([THREE_TENTHS, THREE_TENTHS, -np.inf], 0.0)


def dropped(rng, n):
    X, _ = mirrored(rng, n)
    return X[~np.isnan(X[:, 0])], mr.LogisticMissingness(0.0, [1.5])


WRONG = {
    "mirrored": (mirrored, "contradiction"),
    "a wrong share": (wrong_share, "contradiction"),
    "a wrong share, maximum unknown": (partial(wrong_share, phi=FUNCTION), "shortfall"),
    "scaled, expects too much": (partial(scaled, sign=-1), "contradiction"),
    "scaled, expects too little": (partial(scaled, sign=1), "shortfall"),
    "missing together": (together, "contradiction"),
    "missing rows were dropped": (dropped, "contradiction"),
}


@pytest.mark.parametrize(("draw", "verdict"), WRONG.values(), ids=WRONG)
def test_a_wrong_phi_is_found(draw, verdict):
    for seed in range(20):
        X, phi = draw(np.random.default_rng(seed), 300)
        checks = mr.missingness_check(X, phi, complete=True)
        assert verdict in {check.verdict for check in checks}


def test_an_error_says_what_was_expected_and_found():
    X, phi = scaled(np.random.default_rng(0), 500, sign=-1)
    checks = mr.missingness_check(X, phi)
    with pytest.raises(MissingnessContradictionError) as caught:
        refuse_contradiction(checks, "sick")
    assert caught.value.message.label == "sick"
    assert caught.value.checks == checks
    text = str(caught.value)
    assert "The table contradicts φ of class 'sick': φ expects 100% of column 0" in text
    assert "scaler" in text


def test_a_shortfall_is_warned_of_and_no_guarantee_rests_on_it():
    X, phi = scaled(np.random.default_rng(0), 500, sign=1)
    checks = mr.missingness_check(X, phi)
    with pytest.raises(MissingnessContradictionError) as refused:
        refuse_contradiction(checks, 1)
    # No odds are wrong by a factor of thousands: that is no way out.
    assert "inclusion=" in str(refused.value)
    assert "odds_factor" not in str(refused.value)
    with pytest.warns(MissingnessContradictionWarning, match="doesn't fit") as caught:
        warn_of_contradiction(checks, 1)
    assert caught[0].filename == __file__


def test_a_doubtful_phi_is_warned_of_and_not_refused():
    # φ of .3 where .36 are missing: p lies between .001 and .05.
    rng = np.random.default_rng(0)
    X = np.where(rng.random((900, 1)) < 0.39, np.nan, rng.normal(size=(900, 1)))
    checks = mr.missingness_check(X, CONSTANT)
    assert checks[0].verdict == "consistent"
    with pytest.warns(MissingnessContradictionWarning, match=r"hardly fits.*36"):
        refuse_contradiction(checks, 1)


def learned_tests(pvalue):
    """One test of four with a p-value, and a check that has none."""
    facts = ("x0", "table", 9.0)
    return [
        Check("form", *facts, pvalue, False, "x0: it was tested.", 1.5),
        *[Check("form", *facts, 0.9, False, "x0: fine.", 1.0)] * 3,
        Check("instrument", *facts, None, True, "x0: heavy."),
    ]


def test_a_learned_phi_is_refused_warned_of_or_left_by_all_its_tests_together():
    with pytest.raises(
        MissingnessContradictionError, match="contradict the φ that"
    ) as refused:
        refuse_contradiction((), 0, learned_tests(0.0002))
    assert len(refused.value.checks) == 1
    again = pickle.loads(pickle.dumps(refused.value))
    assert str(again) == str(refused.value)
    for pvalue in (0.0003, 0.012):
        with pytest.warns(
            MissingnessContradictionWarning,
            match=r"cast doubt on the φ.*x0: it was tested.*odds_factor of 1\.5 or",
        ) as caught:
            refuse_contradiction((), 0, learned_tests(pvalue))
        assert "No guarantee" not in str(caught[0].message)
    refuse_contradiction((), 0, learned_tests(0.013))
    refuse_contradiction((), 0, learned_tests(1e-9), odds_factor=1.5)


def test_an_error_names_the_odds_factor_that_covers_what_was_found():
    X, phi = wrong_share(np.random.default_rng(0), 500)
    checks = mr.missingness_check(X, phi)
    with pytest.raises(ValueError, match=r"odds_factor of 4\.58 or more"):
        refuse_contradiction(checks, 1)
    factor = checks[0].odds_factor
    refuse_contradiction(mr.missingness_check(X, phi, odds_factor=factor), 1)


def test_columns_that_go_missing_together_are_named():
    X, phi = together(np.random.default_rng(0), 1000)
    with pytest.raises(MissingnessContradictionError, match="independently") as error:
        refuse_contradiction(mr.missingness_check(X, phi, complete=True), 0)
    assert [check.what for check in error.value.checks] == ["column 0 or column 1"]
    # Each column on its own is as φ says.
    refuse_contradiction(mr.missingness_check(X, phi), 0)


def test_a_learned_phi_is_held_to_its_band():
    X, revealed, _ = lost_and_looked_up(20_000, 1, 20)
    learned = mr.learn_missingness(X, revealed)
    assert [each.verdict for each in mr.missingness_check(X, learned)] == ["consistent"]


def test_nothing_missing_and_nothing_observed():
    Z = np.zeros((50, 1))
    (check,) = mr.missingness_check(Z, mr.LogisticMissingness(-np.inf, 0.0))
    assert (check.verdict, check.expected, check.found) == ("consistent", 0.0, 0.0)
    # φ of zero, and one value is missing: no φ can be more wrong.
    Z[0] = np.nan
    (check,) = mr.missingness_check(Z, mr.LogisticMissingness(-np.inf, 0.0))
    assert check.verdict == "contradiction"
    (check,) = mr.missingness_check(Z * np.nan, mr.LogisticMissingness(0.0, [1.0]))
    assert check.verdict == "consistent"


@pytest.mark.parametrize("n_rows", [1, 7, 3000])
def test_the_evidence_of_columns_at_once_is_that_of_columns_one_by_one(n_rows):
    rng = np.random.default_rng(n_rows)
    weights = 1.0 + rng.exponential(2.0, (n_rows, 5))
    weights[rng.random(weights.shape) < 0.4] = 0.0
    bounds = np.array([np.inf, 100.0, np.inf, 50.0, np.inf])
    together = weight_evidence(weights.T, bounds)
    for j, column in enumerate(weights.T):
        alone = weight_evidence(column[None], bounds[j : j + 1])
        np.testing.assert_allclose(together[:, [j]], alone, rtol=1e-12)
        odds = column[column > 0.0] - 1.0
        assert together[1, j] == pytest.approx(odds.sum())
        capital = [
            np.log1p(bet * odds).sum() + np.log1p(-bet) * (n_rows - len(odds))
            for bet in np.geomspace(3e-4, 0.95, 14)
        ]
        if len(odds):
            expected = logsumexp(capital) - np.log(14)
            assert together[2, j] == pytest.approx(expected)


def test_a_phi_of_the_right_share_and_the_wrong_shape_is_contradicted():
    right = mr.LogisticMissingness([-1.2, -3.0, -3.0, -3.0], [1.0, 0.0, 0.0, 0.0])
    accused = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = mr.corrupt(equicorrelated(rng, 2000, 4), right, rng)
        share = np.isnan(X).mean(axis=0)
        flat = mr.LogisticMissingness(np.log(share / (1.0 - share)), np.zeros(4))
        for checks in (
            mr.missingness_check(X, flat),
            mr.missingness_check(X, right, complete=True),
        ):
            assert all(check.verdict == "consistent" for check in checks)
        checks = mr.missingness_check(X, flat, complete=True)
        against = [check for check in checks if check.verdict != "consistent"]
        assert {check.what for check in against} <= {"column 0"}
        assert all("where other columns predict" in c.sentence for c in against)
        accused += bool(against)
    assert accused == 6


def first_loses(intercept, slope):
    unlost = [-np.inf, -np.inf]
    return mr.LogisticMissingness([intercept, *unlost], [slope, 0.0, 0.0])


def whole_p_value(checks):
    """Of all checks together; their levels add up to 0.001."""
    return min(check.pvalue / check.level for check in checks) * 0.001


def test_a_slope_that_is_too_flat_or_too_steep_is_refuted_whatever_its_share():
    right = first_loses(-1.0, 1.2)
    stated = [first_loses(-0.87, 0.5), first_loses(-0.9, 0.7), right]
    found = []
    for seed in range(12):
        rng = np.random.default_rng([22, seed])
        X = mr.corrupt(equicorrelated(rng, 3000, 3, 0.4), right, rng)
        checks = [mr.missingness_check(X, phi, complete=True) for phi in stated]
        found.append([whole_p_value(each) for each in checks])
    flat, less_flat, same = np.transpose(found)
    assert (flat < 0.001).sum() >= 11
    assert (less_flat < 0.05).sum() >= 10
    assert same.min() > 0.05


def test_an_odds_factor_covers_a_slope_that_is_too_flat():
    rng = np.random.default_rng(0)
    X = mr.corrupt(equicorrelated(rng, 3000, 3, 0.4), first_loses(-1.0, 1.2), rng)
    flat = first_loses(-0.87, 0.5)
    checks = mr.missingness_check(X, flat, complete=True)
    (shape,) = [check for check in checks if check.verdict != "consistent"]
    assert "where other columns predict a high value" in shape.sentence
    assert 1.0 < shape.odds_factor < 2.0
    refuse_contradiction(
        mr.missingness_check(X, flat, complete=True, odds_factor=shape.odds_factor), 0
    )


@pytest.mark.parametrize("n_missing", [1, 12, 25])
def test_rows_that_may_all_have_gone_missing_unseen_refute_nothing(n_missing):
    """φ is .8 for values of which none was observed, as it may happen."""
    rng = np.random.default_rng(0)
    Z = equicorrelated(rng, 400, 3, 0.9)
    highest = np.argsort(Z[:, 0])[-n_missing:]
    cut = Z[highest, 0].min()
    Z[highest, 0] = np.nan

    def phi(X):
        return np.stack([0.8 * (X[:, 0] >= cut), *np.zeros((2, len(X)))], axis=1)

    model = mr.FunctionMissingness(phi, rowwise=False, maximum=0.8)
    chance = 0.8**n_missing
    assert whole_p_value(mr.missingness_check(Z, model, complete=True)) > chance


def hard_table(rng):
    """Weights of a right φ, what φ is at most, and the table that lost values by it."""
    n, d = int(rng.choice([300, 1400, 5000])), int(rng.choice([3, 5, 20]))
    rho, share = rng.choice([0.0, 0.4, 0.8]), rng.choice([0.01, 0.04, 0.1, 0.3, 0.5])
    Z = equicorrelated(rng, n, d, rho)
    heavy = rng.standard_t(3, size=(n, 1)) + equicorrelated(rng, n, d, rho)
    Z = [Z, heavy, np.exp(0.8 * Z), np.floor(1.5 * np.exp(0.6 * Z))][rng.integers(4)]
    kind, most = rng.choice(["logistic", "constant", "step", "step, no maximum"]), None
    if kind == "logistic":
        slope = rng.choice([-2.5, -1.2, -0.5, 0.5, 1.2, 2.5]) / Z.std()
        Z, coef = np.clip(Z, -9.0 * Z.std(), 9.0 * Z.std()), np.full(d, slope)
        model = mr.LogisticMissingness.from_proportion(Z, coef, proportion=share)
        phi = model.missing_probability(Z)
    elif kind == "constant":
        phi, most = np.full(Z.shape, share), share
    else:
        phi = np.where(np.quantile(Z, 1.0 - share, axis=0) < Z, 0.8, 0.02)
        most = 0.8 if kind == "step" else None
    X = np.where(rng.random(Z.shape) < phi, np.nan, Z)
    weights = np.where(np.isnan(X), 0.0, 1.0 / (1.0 - phi))
    return weights, np.full(d, np.inf if most is None else 1.0 / (1.0 - most)), X


@pytest.mark.validity
@pytest.mark.parametrize("seed", range(2))
def test_a_right_phi_is_refuted_by_shapes_once_in_a_thousand_tables(seed):
    rng, found = np.random.default_rng([4, seed]), []
    for _ in range(1000):
        weights, bounds, X = hard_table(rng)
        names = [str(j) for j in range(X.shape[1])]
        checks = check_weights([weights], names, bounds, table=X)
        found.append(whole_p_value(checks))
    assert (np.array(found) < 0.001).sum() <= binom.ppf(0.999, 1000, 0.001)
    assert (np.array(found) < 0.05).sum() <= 0.05 * 1000


@pytest.mark.validity
def test_shapes_are_contradicted_at_their_level():
    accused, n_tables = 0, 400
    for seed in range(n_tables):
        rng = np.random.default_rng([3, seed])
        width = int(rng.integers(2, 8))
        mixing = rng.normal(size=(width, width))
        Z = rng.standard_t(3, size=(int(rng.integers(200, 900)), width)) @ mixing
        slopes = rng.normal(0, 1, width) / np.abs(Z).max(axis=0)
        phi = mr.LogisticMissingness(rng.normal(-1, 1, width), 9.0 * slopes)
        checks = mr.missingness_check(
            mr.corrupt(Z, phi, rng), phi, complete=True, level=0.05
        )
        accused += any(check.verdict != "consistent" for check in checks)
    assert accused <= 0.05 * n_tables
