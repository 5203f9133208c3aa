"""Bases: the features f(z) in which a log density ratio is linear.

``log r(z) = θᵀf(z) − log N``. A basis is a scikit-learn transformer from p columns
to k features that takes NaN as it comes, and says in ``required_columns_`` which
columns each feature needs, so that later stages know which rows, and which weights,
count for it.
"""

from missratio.basis.columns import LinearBasis as LinearBasis
from missratio.basis.columns import PolynomialBasis as PolynomialBasis
from missratio.basis.contract import Basis as Basis
from missratio.basis.gaussian import GaussianBasis as GaussianBasis
from missratio.basis.transformers import ColumnwiseBasis as ColumnwiseBasis
from missratio.basis.transformers import TransformerBasis as TransformerBasis
from missratio.basis.transformers import as_basis as as_basis
