"""Certificates and the power that they were chosen by, on tables as they are drawn."""

import numpy as np
import pytest
from classifiers import Total, learned

import missratio as mr
from missratio.classifier.certify import certify, choose_trust
from missratio.classifier.estimators import ClassTable
from missratio.classifier.promise import Promise

# Rule, columns, φ: whether of rows, intercept, slope; α, training rows of one class,
# others or none, values looked up (0: φ is stated, −1: it is learned from the table);
# cap, power promised, Γ, thresholds at α, 0.4 and 0.6.
DIGITS = """
auto 1 1 -1 1 0.2 0 1 0   nan 0 1.0387 1.0418 0.51305 0.047673
auto 1 1 -1 1 0.2 200 1 0   nan 0.4999 1.0218 1.0412 0.44399 -0.28998
auto 1 1 -1 1 0.2 200 0 0   5.5845 0.4561 1.0287 1.3674 0.44399 -0.28998
auto 1 1 0 -1 0.2 200 1 0   1.3462 0.695 1.949 1.0663 1.0663 1.0663
thinning 1 1 0 -1 0.05 200 0 0   1.3462 0.30683 1.2509 2.5524 1.0663 1.0663
paper 1 1 0 -1 0.9 200 1 0   1.6018 0.845 1.1529 0.55834 nan 1.4748
betting 1 1 -1 1 0.4 200 1 0   2.7923 0.34 1.0434 0.62213 0.62213 -0.11384
counting 2 0 -1.5 1 0.2 200 1 0   5.2268 0.33 1.4735 1.8121 1.4989 0.89055
auto 2 0 -1.5 1 0.1 200 0 0   8.158 0.33032 1.1369 2.0463 0.99491 0.14038
tuned-betting 2 0 -1 -0.5 0.3 200 0 0   nan 0.74684 nan nan 2.9567 0.99557
bernstein 2 0 -2 1 0.5 200 1 0   4.329 0.735 1.012 0.99557 1.4001 0.62124
auto 1 0 -1.5 1 0.3 300 1 60   nan 0.67 1.0325 1.0302 0.63707 -0.022532
auto 1 1 -1.5 1 0.1 300 1 99   6.5802 0.13344 1.0725 2.0268 0.55834 -0.057976
thinning 1 1 0 -1 0.2 300 0 60   2.7745 0.44775 1.1987 1.3674 0.7698 0.14188
auto 1 0 -1.5 1 0.3 0 1 60   nan 0 1.0325 1.0669 0.62102 -0.077345
auto 2 0 -2 1 0.4 300 1 60   nan 0.9425 1.0249 0.81909 0.81909 -0.079757
bernstein 2 0 -2 0.5 0.5 300 1 60   2.6275 0.655 1.0173 0.78322 1.0445 0.39428
counting 2 0 -2 1 0.5 300 0 -1   19.35 0.4401 1.6262 1.6015 1.8844 1.1561
auto 2 0 -2.5 0.5 0.4 300 1 -1   2.2806 0.24 1.0295 0.78322 0.78322 0.11186
paper 1 0 -2 1 0.95 300 1 60   2.4689 0.405 1.0097 0.35861 nan nan
betting 1 1 -1.5 1 0.4 300 1 60   3.6538 0.345 1.0264 0.63707 0.63707 0.051034
"""


@pytest.mark.filterwarnings("ignore::missratio.learning.MissingnessWarning")
@pytest.mark.parametrize("line", DIGITS.strip().splitlines())
def test_certificates_keep_their_digits(line):
    rule, *numbers = line.split()
    d, whole, start, slope, alpha, n0, others, m, *digits = map(float, numbers)
    n, n0, looked_up = int(n0 + 200 + 100 * (m != 0.0)), int(n0), max(int(m), 5)
    table = learned(n, int(d), looked_up, 0, whole > 0.0, slope, start, 200)
    X, y, phi, stated = table
    phi = phi if m > 0.0 else stated if m == 0.0 else mr.learn_missingness(X[:n])
    odds, score = 1.3 if rule == "counting" else 1.0, Total().decision_function
    given = rule, odds, "reject_all", np.arange(n0, n), np.arange(n0), phi, None
    promise = Promise(0, 1, alpha, 0.1, *given)
    scores = np.nan_to_num(score(X), nan=-np.inf)
    given = promise, ClassTable(X, y, [0, 1], {0: phi}, "complete"), scores
    free, rng = np.flatnonzero(y) if others else None, np.random.default_rng(1)
    chosen, power = choose_trust(*given, free, forecast=True)
    assert m or choose_trust(*given, free)[0][:2] == chosen[:2]
    certificate, kept = certify(*given, score, rng, chosen)
    levels = [each.threshold for each in kept.select([alpha, 0.4, 0.6])]
    found = np.array([kept.trust.cap, power, certificate.sensitivity, *levels], float)
    assert found == pytest.approx(digits, rel=1e-4, nan_ok=True)
    assert certificate.looked_up == certificate.not_found == 0
    assert rule in ("auto", certificate.rule)
