"""Certificates and the power that they were chosen by, on tables as they are drawn."""

import numpy as np
import pytest
from classifiers import Total
from data import looked_up, stacked

import missratio as mr
from missratio.classifier.certify import certify, choose_trust, pilot_size
from missratio.classifier.estimators import ClassTable
from missratio.classifier.promise import Promise

PHIS = {
    "none": None,
    "rising": mr.LogisticMissingness(-1.0, [1.0], True),
    "falling": mr.LogisticMissingness(0.0, [-1.0], True),
    "step": mr.StepMissingness([-1.0], 0.5, 0.7),
    "one": mr.LogisticMissingness(-1.5, [1.0]),
    "two": mr.LogisticMissingness([-1.5, -1.0], [1.0, -0.5]),
    "weak": mr.LogisticMissingness([-1.2, -2.0, -np.inf], [1.0, 0.0, 0.0]),
}
# φ, rule, α, training rows of one class, others or none, values looked up (−1: none,
# and φ is learned); cap, power promised, Γ, and thresholds at α, 0.4 and 0.6.
DIGITS = """
none auto 0.2 200 1 0   nan 0.7 nan 0.85275 0.26063 -0.34031
rising auto 0.2 200 1 0   nan 0.41055 1.0496 1.5942 0.41212 -0.20727
rising auto 0.2 200 0 0   12.917 0.41447 1.0465 1.4224 0.3625 -0.22993
falling auto 0.2 200 1 0   1.3527 0.63574 2.6958 1.0663 1.0663 1.0663
step auto 0.2 200 1 0   1 0.65211 inf 0.85275 0.23567 -0.34567
step paper 0.9 200 1 0   nan 0.53 1.0045 1.0663 nan nan
two counting 0.2 200 1 0   6.2592 0.64659 1.7587 1.6461 0.71308 0.29988
two tuned-betting 0.2 200 0 0   3.0475 0.59034 1.003 1.4828 0.62124 -0.10548
two bernstein 0.5 200 1 0   4.7617 0.805 1.0173 0.78386 1.1661 0.48918
rising betting 0.4 200 1 0   3.2292 0.44 1.0356 0.36747 0.36747 -0.14705
one auto 0.3 300 1 60   nan 0.76086 1.0559 1.0744 0.64624 -0.017742
one auto 0.1 300 1 99   2.2917 0.14952 1.0886 1.3674 0.29404 -0.15587
falling thinning 0.2 300 0 60   2.7528 0.4661 1.1951 1.4493 0.91981 0.27813
one auto 0.3 0 1 60   nan 0 1.0685 0.93505 0.63335 -0.038835
one paper 0.95 300 1 60   2.5183 0.33 1.006 0.42611 nan nan
rising betting 0.4 300 1 60   3.4239 0.27 1.0272 0.80602 0.80602 0.26063
two auto 0.4 300 1 60   nan 0.88308 1.0272 1.4558 1.4558 0.2672
two bernstein 0.5 300 1 60   8.9455 0.645 1.012 1.4457 1.6043 1.0445
weak auto 0.4 500 1 -1   15.429 0.5875 1.0135 1.2 1.2 -0.18211
weak counting 0.5 500 0 -1   5.8169 0.74097 1.3078 0.61656 1.1175 0.53029
"""


def promise(phi, held, known=0, alpha=0.2, rule="auto", odds=1.0):
    rows = np.arange(known + held)
    given = rule, odds, "reject_all", rows[known:], rows[:known], phi, None
    return Promise(0, 1, alpha, 0.1, *given)


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
@pytest.mark.parametrize("line", DIGITS.strip().splitlines())
def test_certificates_keep_their_digits(line):
    name, rule, alpha, *numbers = line.split()
    n0, others, m = map(int, numbers[:3])
    phi, rng = PHIS[name], np.random.default_rng(0)
    Z = rng.normal(size=(n0 + 200 + 100 * (m != 0), np.size(getattr(phi, "coef", 0))))
    X = Z if phi is None else mr.corrupt(Z, phi, rng)
    if m:
        revealed = looked_up(X, Z, m, rng, phi.rowwise) if m > 0 else None
        phi = mr.learn_missingness(X, revealed, rowwise=phi.rowwise)
    odds, score = 1.3 if rule == "counting" else 1.0, Total().decision_function
    made = promise(phi, len(Z) - n0, n0, float(alpha), rule, odds)
    X, y = stacked(X, rng.normal(1.5, 1.0, (200, Z.shape[1])))
    table = ClassTable(X, y, [0, 1], {0: phi}, "complete")
    given = made, table, np.nan_to_num(score(X), nan=-np.inf)
    free, rng = np.flatnonzero(y) if others else None, np.random.default_rng(1)
    chosen, power = choose_trust(*given, free, forecast=True)
    assert m or choose_trust(*given, free)[0][:2] == chosen[:2]
    certificate, kept = certify(*given, score, rng, chosen)
    levels = [each.threshold for each in kept.select([made.alpha, 0.4, 0.6])]
    found = np.array([kept.trust.cap, power, certificate.sensitivity, *levels], float)
    digits = [*map(float, numbers[3:])]
    assert found == pytest.approx(digits, rel=1e-4, nan_ok=True)
    assert certificate.looked_up == certificate.not_found == 0
    assert rule in ("auto", certificate.rule)


def test_some_rows_choose_a_cap_where_that_pays():
    def pilots(*given, **more):
        return pilot_size(promise(*given, **more), 1)

    rising, sizes = PHIS["rising"], [63, 64, 300, 1320, 2000]
    assert [pilots(rising, n) for n in sizes] == [0, 10, 45, 198, 200]
    assert pilots(rising, 300, 1) == pilots(rising, 300, rule="betting") == 0
    steps = [mr.StepMissingness([1.0], 0.0, share) for share in (0.6, 0.61, 0.99)]
    assert [pilots(phi, 100, alpha=0.05) for phi in steps] == [0, 15, 15]
