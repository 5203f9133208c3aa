"""Certificates from look-ups hold with probability 1 − δ, in random settings."""

import numpy as np
import pytest
from promises import kept

from missratio.threshold import LookUpRule, looked_up_sample


def random_setting(rng):
    return {
        "n_rows": int(rng.choice([5, 20, 40, 60, 100, 236])),
        "alpha": float(rng.choice([0.05, 0.1, 0.2, 0.4])),
        "delta": float(rng.choice([0.05, 0.1, 0.25])),
        "ties": int(rng.choice([0, 0, 3, 12])),
        "phi": str(rng.choice(["up", "down", "step", "u", "flat", "adversarial"])),
        "level": float(rng.uniform(0.05, 0.95)),
        "slope": float(rng.uniform(0.5, 6.0)),
        "share": float(rng.choice([0.02, 0.1, 0.3, 0.6, 0.95, 1.0])),
        "design": str(rng.choice(["fixed", "coins", "stopped"])),
        "lost": float(rng.choice([0.0, 0.0, 0.3])),
        "strata": int(rng.choice([1, 1, 2, 3])),
    }


def incomplete_rows(setting, u, rng):
    """Which rows miss something: scores are uniform, so that u says it all."""
    level, slope, critical = setting["level"], setting["slope"], 1 - setting["alpha"]
    phi = {
        "up": level * u**slope,
        "down": level * (1 - u) ** slope,
        "step": np.where(u > critical, level, 0.1),
        "u": level * np.abs(2 * u - 1) ** slope,
        "flat": np.full(len(u), level),
        # All that matters is incomplete.
        "adversarial": np.where(u > critical - 0.02, 1.0, 0.2 * level),
    }[setting["phi"]]
    return rng.uniform(size=len(u)) < phi


def violated(setting, rng, broken=None):
    """Whether the error of a certified threshold exceeds α."""
    n_rows = setting["n_rows"]
    u = rng.uniform(size=n_rows)
    ties = setting["ties"]
    scores = np.floor(u * ties) / ties if ties else u.copy()
    incomplete = incomplete_rows(setting, u, rng)
    strata = rng.integers(0, setting["strata"], n_rows)
    inclusion = np.where(incomplete, 0.0, 1.0)
    for stratum in range(setting["strata"]):
        rows = rng.permutation(np.flatnonzero(incomplete & (strata == stratum)))
        share = min(1.0, setting["share"] * (1 + stratum))
        count = int(np.ceil(share * len(rows)))
        if setting["design"] == "coins":
            count = int(rng.binomial(len(rows), share))
        elif setting["design"] == "stopped":
            count = int(rng.integers(0, count + 1))
        # All of them drawn is still a draw.
        inclusion[rows[:count]] = min(count / max(len(rows), 1), 0.999999)
    drawn = (inclusion > 0) & (inclusion < 1)
    lost = drawn & (u > 0.5) & (rng.uniform(size=n_rows) < setting["lost"])
    scores[lost] = np.nan
    if broken == "not found ignored":
        inclusion[lost], scores[lost] = 0.0, 0.0
        keep = ~lost
        scores, inclusion, strata = scores[keep], inclusion[keep], strata[keep]
    if broken == "weights left out":
        keep = inclusion > 0
        scores, inclusion, strata = scores[keep], np.ones(keep.sum()), strata[keep]
        scores = np.where(np.isnan(scores), np.inf, scores)
    strata = strata if setting["strata"] > 1 else None
    sample = looked_up_sample(scores, inclusion, strata)
    chosen = LookUpRule().select(sample, setting["alpha"], setting["delta"])
    if chosen.threshold is None:
        return False
    above = 1 - chosen.threshold
    if ties:
        above = 1 - (np.floor(chosen.threshold * ties + 1e-9) + 1) / ties
    return above > setting["alpha"] + 1e-9


def count(setting, repeats, seed, broken=None):
    rng = np.random.default_rng(seed)
    return sum(violated(setting, rng, broken) for _ in range(repeats))


def settings(number, seed):
    rng = np.random.default_rng(seed)
    return [random_setting(rng) for _ in range(number)]


def check(setting, repeats, seed):
    found = count(setting, repeats, seed)
    assert kept(found, repeats, setting["delta"], sure=1e-4), setting


def test_a_few_settings():
    for place, setting in enumerate(settings(8, seed=7)):
        check(setting, 60, place)


@pytest.mark.validity
@pytest.mark.parametrize("place", range(60))
def test_random_settings(place):
    check(settings(60, seed=0)[place], 400, place)


HARD = {
    "n_rows": 236, "alpha": 0.2, "delta": 0.1, "ties": 0, "phi": "up", "level": 0.9,
    "slope": 2.0, "share": 0.3, "design": "fixed", "lost": 0.0, "strata": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("broken", "change"),
    [
        ("weights left out", {}),
        ("not found ignored", {"lost": 0.9, "share": 1.0, "phi": "adversarial"}),
    ],
)
def test_what_is_left_out_is_caught(broken, change):
    assert count(HARD | change, 60, seed=0) <= 15
    assert count(HARD | change, 60, seed=0, broken=broken) > 30
