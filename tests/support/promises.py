"""Whether promises that hold with a probability were kept often enough."""

import numpy as np
from scipy.stats import binomtest


def kept(broken, repeats, delta, sure=1e-3):
    """Whether so many broken promises are no surprise where δ is allowed."""
    return binomtest(int(broken), repeats, delta, "greater").pvalue > sure


def at_least(count, repeats, share, sure=1e-3):
    """Whether so few are no surprise where a share is promised."""
    return binomtest(int(count), repeats, share, "less").pvalue > sure


def slack(alpha, n_fresh, deviations=3.0):
    """How far the share of so many fresh rows may be from an error of α."""
    return deviations * np.sqrt(alpha * (1.0 - alpha) / n_fresh)
