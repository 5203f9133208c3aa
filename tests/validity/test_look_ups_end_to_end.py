"""From a plan to a certificate: tables at random, and how often it fails."""

import numpy as np
import pytest
from optional_packages import optional
from promises import kept, slack
from scipy.special import expit

import missratio as mr
from missratio.exceptions import NoCertificateError

optional("pandas")
DELTA, FRESH = 0.2, 20_000


def random_setting(rng):
    return {
        "n": int(rng.choice([30, 60, 150, 400])),
        "d": int(rng.choice([1, 2, 3])),
        "ties": int(rng.choice([0, 0, 1, 3])),
        "phi": str(rng.choice(["up", "step", "u", "all", "other", "flat"])),
        "lost": str(rng.choice(["first", "each", "rows"])),
        "rowwise": bool(rng.random() < 0.6),
        "share": float(rng.choice([0.05, 0.2, 0.5, 0.9])),
        "not_found": float(rng.choice([0.0, 0.0, 0.3, 0.5])),
        "answered": float(rng.choice([1.0, 0.5])),
        "alpha": float(rng.choice([0.1, 0.2, 0.3])),
    }


def draw(n, label, setting, rng):
    Z = rng.normal(size=(n, setting["d"])) + 0.5 * rng.normal(size=(n, 1)) + label
    return np.round(Z * setting["ties"]) / setting["ties"] if setting["ties"] else Z


def chance(setting, z, other):
    return {
        "up": expit(2 * z - 0.5),
        "step": np.where(z > 0.8, 0.95, 0.1),
        "u": np.where(np.abs(z - 0.3) > 1, 0.9, 0.1),
        "all": np.full(len(z), 0.97),
        "other": expit(2 * other - 0.5),
        "flat": np.full(len(z), 0.5),
    }[setting["phi"]]


def lose(Z, setting, rng):
    lost, d = np.zeros(Z.shape, dtype=bool), setting["d"]
    if setting["lost"] == "rows":
        lost[rng.random(len(Z)) < chance(setting, Z.mean(axis=1), Z[:, -1])] = True
        return lost
    for j in range(d if setting["lost"] == "each" else 1):
        chances = chance(setting, Z[:, j], Z[:, (j + 1) % d])
        lost[:, j] = rng.random(len(Z)) < chances
    return lost


def answered(X, y, Z, setting, seed, rng):
    """A plan, filled in as far as somebody got; high values are hard to find."""
    incomplete = np.isnan(X).any(axis=1) & (y == 0)
    wanted = max(1, int(np.ceil(setting["share"] * incomplete.sum())))
    plan = mr.plan_queries(
        X, y, per_feature=wanted, rowwise=setting["rowwise"], random_state=seed
    )
    values = Z[plan.rows, plan.columns].astype(object)
    hard = rng.random(len(X)) < 2 * setting["not_found"] * (Z[:, 0] > 0)
    values[hard[plan.rows]] = "not found"
    values[plan.order > np.ceil(setting["answered"] * plan.order.max())] = None
    frame = plan.to_frame()
    frame["value"] = values
    return mr.QueryPlan.read(frame, X, y)


def outcome(seed):
    """Whether the promise is broken; None where nothing could be fitted."""
    rng = np.random.default_rng([11, seed])
    setting = random_setting(rng)
    y = np.repeat([0, 1], setting["n"])
    Z = np.concatenate([draw(setting["n"], label, setting, rng) for label in (0, 1.2)])
    lost = lose(Z, setting, rng)
    X = np.where(lost, np.nan, Z)
    if not lost[y == 0].any():
        return None
    filled, inclusion = answered(X, y, Z, setting, seed, rng).fill(X)
    classifier = mr.NeymanPearsonClassifier(
        mr.KLIEP(l2=0.05), alpha=setting["alpha"], delta=DELTA, random_state=seed
    )
    try:
        classifier.fit(filled, y, inclusion=inclusion)
    except NoCertificateError:
        return False
    except ValueError as error:
        # Too few values to fit a score to.
        refusals = ("looked up", "joint fit", "no observed row", "never observed")
        if any(words in str(error) for words in refusals):
            return None
        raise
    fresh = draw(FRESH, 0.0, setting, np.random.default_rng(99))
    error = (classifier.predict(fresh) != 0).mean()
    alpha = setting["alpha"]
    return bool(error > alpha + slack(alpha, FRESH))


def check(seeds):
    found = [each for each in map(outcome, seeds) if each is not None]
    assert len(found) > 0.6 * len(seeds)
    assert kept(sum(found), len(found), DELTA, sure=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_a_few_tables():
    check(range(40))


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore")
def test_many_tables():
    check(range(1000, 2000))
