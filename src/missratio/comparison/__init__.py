"""Two samples compared: how far apart they are, and whether they differ at all."""

from missratio.comparison.divergence import DivergenceEstimate, estimate_divergence
from missratio.comparison.two_sample_test import RatioTest, ratio_test

__all__ = ["DivergenceEstimate", "RatioTest", "estimate_divergence", "ratio_test"]
