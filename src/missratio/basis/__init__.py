"""Bases: the features f(z) in which a log density ratio is linear.

``log r(z) = θᵀf(z) − log N``. A basis is a scikit-learn transformer from p columns
to k features that takes NaN as it comes, and says in ``required_columns_`` which
columns each feature needs, so that later stages know which rows, and which weights,
count for it.
"""

from missratio.basis._base import Basis
from missratio.basis._columnwise import ColumnwiseBasis
from missratio.basis._gaussian import GaussianBasis
from missratio.basis._linear import LinearBasis
from missratio.basis._polynomial import PolynomialBasis
from missratio.basis._resolve import as_basis
from missratio.basis._transformer import TransformerBasis
from missratio.basis._union import UnionBasis

__all__ = [
    "Basis",
    "ColumnwiseBasis",
    "GaussianBasis",
    "LinearBasis",
    "PolynomialBasis",
    "TransformerBasis",
    "UnionBasis",
    "as_basis",
]
