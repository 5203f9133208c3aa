"""Level and power of the two-sample test, and coverage of divergences' intervals.

The simulation is that of docs/validity.md.
"""

import comparison_validity
import pytest
from promises import slack

pytestmark = [
    pytest.mark.validity,
    pytest.mark.filterwarnings(
        "ignore::missratio.exceptions.WeightConcentrationWarning"
    ),
    pytest.mark.filterwarnings("ignore::missratio.exceptions.SmallSampleWarning"),
]


@pytest.mark.parametrize("missing", ["nothing", "alike", "differently", "lopsided"])
def test_the_level_holds(missing):
    found = comparison_validity.p_values(1, 500, missing)
    for level in (0.05, 0.1, 0.2):
        assert (found <= level).mean() <= level + slack(level, 500)
        # And isn't given away.
        assert (found <= level).mean() >= level / 3.0


@pytest.mark.parametrize("missing", ["nothing", "alike", "differently"])
def test_the_test_has_power(missing):
    found = comparison_validity.p_values(2, 150, missing, change=0.4)
    assert (found <= 0.1).mean() > 0.5


@pytest.mark.parametrize("broken", ["permutation", "ignore"])
def test_broken_tests_are_caught(broken):
    found = comparison_validity.p_values(3, 200, "lopsided", broken=broken)
    assert (found <= 0.05).mean() > 0.05 + slack(0.05, 200)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
def test_intervals_hold_the_truth(divergence, missing):
    held, bias = comparison_validity.coverage(4, 150, divergence, missing)
    # Pearson's divergence is a mean of squares, with a long tail.
    tail = 0.05 if divergence == "pearson" else 0.02
    assert held > 0.95 - tail - slack(0.95, 150)
    assert abs(bias) < 0.5


@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
def test_intervals_of_small_samples_hold_the_truth(divergence):
    held, _ = comparison_validity.coverage(6, 200, divergence, True, least=80, most=200)
    # With a margin as wide below the estimate as above it 0.90 to 0.92.
    assert held > 0.925


def test_intervals_of_complete_cases_are_caught():
    held, _ = comparison_validity.coverage(5, 100, "kl", True, broken="ignore")
    assert held < 0.8
