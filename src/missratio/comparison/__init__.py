"""Two samples compared: how far apart they are, and whether they differ at all."""

from missratio.comparison._divergence import DivergenceEstimate, estimate_divergence
from missratio.comparison._ratio_test import RatioTest, ratio_test

__all__ = ["DivergenceEstimate", "RatioTest", "estimate_divergence", "ratio_test"]
