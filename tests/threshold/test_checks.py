"""A rule of one's own is tried out, and what is wrong with it is said."""

import numpy as np
import pytest

from missratio.threshold import RULES, Rule, Selection, check_rule


@pytest.mark.parametrize("name", RULES)
def test_every_rule_of_the_package_passes(name):
    broken = check_rule(name, repeats=60)
    assert max(broken.values()) < 0.25
    # The binomial rule is for complete rows alone.
    assert len(broken) == (1 if name == "binomial" else 4)


def own(select):
    return type("Own", (Rule,), {"name": "own", "select": select})()


def chosen(threshold):
    return Selection(float(threshold), "own", 0.1)


def refuse(self, sample, alpha, delta):
    raise ValueError("not today")


WRONG = {
    "breaks its promise: where nothing is missing, .* in 3.% of 300": own(
        lambda self, s, alpha, delta: chosen(np.quantile(s.values, 1 - alpha))
    ),
    "breaks its promise: where high scores are missing": own(
        lambda self, s, alpha, delta: chosen(np.quantile(s.values, 1 - alpha / 2))
    ),
    "depends on the order of rows": own(
        lambda self, s, alpha, delta: chosen(s.values[:50].max())
    ),
    "falls when some scores rise": own(
        lambda self, s, alpha, delta: chosen(1.0 - 0.01 * np.mean(s.values))
    ),
    "nothing to check": own(refuse),
    "must return a Selection.*: got float": own(lambda self, s, alpha, delta: 0.9),
    "or a Rule: got <class": Rule,
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_rule(WRONG[message])
