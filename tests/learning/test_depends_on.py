"""φ that depends on the value itself and on columns that are always observed."""

import learning_table as simulation
import numpy as np
import pytest
from classifiers import certified
from data import equicorrelated, looked_up, stacked
from optional_packages import optional
from scipy.special import expit
from scipy.stats import binom

import missratio as mr
from missratio.learning import MissingnessWarning
from missratio.missingness import BlockMissingness

pd = optional("pandas")

TRUTH = np.array([-1.2, 1.0, 1.0])
NAMES = ["age", "sugar", "pulse", "weight"]


def draw(n, rng, shift=0.0, rho=0.6):
    """Correlated columns; the first, age, is observed throughout."""
    Z = equicorrelated(rng, n, 4, rho)
    Z[:, 0] += shift
    return Z


def lose(Z, rng, truth=TRUTH):
    """Sugar goes missing by its own value, and by age."""
    lost = rng.random(len(Z)) < expit(truth[0] + Z[:, [1, 0]] @ truth[1:])
    X = Z.copy()
    X[lost, 1] = np.nan
    return X


def test_slopes_are_within_their_errors_and_the_band_holds_phi():
    deviates, held = [], 0
    at = draw(200, np.random.default_rng(99))
    truth = expit(TRUTH[0] + at[:, [1, 0]] @ TRUTH[1:])
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(lose(draw(3000, rng), rng), columns=NAMES)
        phi = mr.learn_missingness(X, depends_on=["age"], check=False)
        (block,) = phi.blocks
        assert (block.columns, block.inputs) == ((1,), (1, 0))
        model = block.model
        theta = np.append(model.intercept, model.coef)
        deviates.append((theta - TRUTH) / model.standard_errors)
        lower, upper = phi.probability_band(pd.DataFrame(at, columns=NAMES), 0.1)
        held += bool(((lower[:, 1] <= truth) & (truth <= upper[:, 1])).all())
    assert np.abs(np.mean(deviates, axis=0)).max() < 1.0
    assert 0.6 < np.std(deviates) < 1.4
    assert held >= binom.ppf(1e-3, 12, 0.9)


def test_looked_up_values_add_to_what_the_table_says():
    rng = np.random.default_rng(0)
    Z = draw(2000, rng)
    X = lose(Z, rng)
    revealed = looked_up(X, Z, 150, rng)
    errors = [
        mr.learn_missingness(X, *more, depends_on=[0]).blocks[0].model.standard_errors
        for more in ((), (revealed,))
    ]
    assert (errors[1][1:] < errors[0][1:]).all()
    alone = mr.learn_missingness(X, revealed, from_table=False, depends_on=[0])
    model = alone.blocks[0].model
    off = np.abs(np.append(model.intercept, model.coef) - TRUTH)
    assert (off < 4 * model.standard_errors).all()


def test_without_it_the_test_of_other_columns_names_the_remedy():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(lose(draw(3000, rng), rng), columns=NAMES)
    match = r"where age is high .*depends_on=\['age'\]"
    with pytest.warns(MissingnessWarning, match=match):
        mr.learn_missingness(X)
    checks = mr.learn_missingness(X, depends_on=["age"]).checks
    assert {check.kind for check in checks} >= {"form", "other columns", "instrument"}
    assert not any(check.failed for check in checks)


def pooled(n, d, share, slope, of_age, seed, rho=0.5):
    """The test over all columns of a table of which all but the first lose values."""
    rng = np.random.default_rng([29, seed])
    Z = equicorrelated(rng, n, d, rho)
    level = np.log(share / (1.0 - share)) - (slope + of_age) ** 2 / 3.0
    chance = expit(level + slope * Z[:, 1:] + of_age * Z[:, :1])
    Z[:, 1:] = np.where(rng.random(chance.shape) < chance, np.nan, Z[:, 1:])
    checks = simulation.learn(Z, None).checks
    return [check for check in checks if check.feature.endswith(" columns")]


@pytest.mark.parametrize("tables", [3, pytest.param(20, marks=pytest.mark.validity)])
def test_columns_that_each_say_too_little_say_it_together(tables):
    for seed in range(tables):
        (check,) = pooled(1500, 20, 0.04, 0.5, 0.5, seed)
        assert check.failed
        assert (
            "19 columns: they go missing more often where 0 is high" in check.sentence
        )


@pytest.mark.parametrize("tables", [24, pytest.param(600, marks=pytest.mark.validity)])
def test_together_they_accuse_no_other_column_of_a_phi_of_the_value_alone(tables):
    """Rare blanks among them: the tail is the saddlepoint's, not the normal law's."""
    found = []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        n, d = int(rng.choice([300, 700, 1400])), int(rng.choice([5, 12, 20]))
        share, slope = rng.choice([0.01, 0.02, 0.04, 0.1]), rng.choice([-1, 0, 0.5])
        tests = pooled(n, d, share, slope, 0.0, seed, rng.choice([0.3, 0.6, 0.85]))
        found += [check.pvalue for check in tests]
    assert len(found) > tables / 4
    for level in (0.05, 0.01):
        count = sum(pvalue <= level for pvalue in found)
        assert count <= binom.ppf(0.999, len(found), level)


def test_a_stated_phi_with_further_columns_weighs_as_a_learned_one():
    rng = np.random.default_rng(2)
    slopes = {"sugar": TRUTH[1], "age": TRUTH[2]}
    phi = mr.LogisticMissingness.from_columns({"sugar": (TRUTH[0], slopes)})
    Z = pd.DataFrame(draw(40_000, rng), columns=NAMES)
    X = mr.corrupt(Z, phi, random_state=0)
    assert np.isnan(X.to_numpy()).any(axis=0).tolist() == [False, True, False, False]
    weights = phi.weights(X)[:, 1]
    assert weights.mean() == pytest.approx(1.0, abs=0.03)
    mean = np.nansum(weights * X["sugar"]) / weights.sum()
    assert mean == pytest.approx(Z["sugar"].mean(), abs=0.06)
    assert isinstance(phi.bound(NAMES), BlockMissingness)


def test_what_must_be_observed_and_is_not_is_refused():
    rng = np.random.default_rng(3)
    X = lose(draw(300, rng), rng)
    with pytest.raises(ValueError, match=r"Column\(s\) 1 have missing.*depends_on"):
        mr.learn_missingness(X, depends_on=[1])
    with pytest.raises(ValueError, match="depends_on names 'agee'"):
        mr.learn_missingness(X, depends_on=["agee"])
    phi = mr.LogisticMissingness.from_columns(
        {"sugar": (-1.2, {"sugar": 1.0, "age": 1.0})}, names=NAMES
    )
    X[np.flatnonzero(~np.isnan(X[:, 1]))[:5], 0] = np.nan
    with pytest.raises(ValueError, match=r"depends on .* 5 rows miss one"):
        phi.weights(X)
    with pytest.raises(ValueError, match="depends on further columns"):
        mr.TiltedImputer(phi).fit(X)


@pytest.mark.parametrize("repeats", [2, pytest.param(60, marks=pytest.mark.validity)])
def test_certificates_hold_and_say_what_they_assume(repeats):
    # The old are of class 1, and of class 0 they are lost: 25 of 30 certificates by a φ
    # of the value alone are broken.
    broken, n, truth = 0, 4000, np.array([-1.5, 0.3, 1.5])
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        X0 = lose(draw(n, rng, rho=0.8), rng, truth)
        X1 = draw(600, rng, shift=0.8, rho=0.8)
        phi = mr.learn_missingness(X0, depends_on=[0], check=False)
        options = {"random_state": seed, "on_infeasible": "reject_all"}
        classifier = certified(
            mr.FDivergenceRatio("js"), missingness={0: phi}, **options
        )
        classifier.fit(*stacked(X0, X1))
        broken += classifier.predict(draw(50_000, rng, rho=0.8)).mean() > 0.1
        said = str(classifier.certificate_)
        assert ("the columns that φ names" in said) == classifier.certificate_.certified
    assert broken <= binom.ppf(1 - 1e-3, repeats, 0.1)
