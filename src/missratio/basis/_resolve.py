"""What an estimator's ``basis`` parameter may be."""

from typing import Any

from missratio._base.hints import did_you_mean, listed
from missratio.basis._base import Basis
from missratio.basis._gaussian import GaussianBasis
from missratio.basis._linear import LinearBasis
from missratio.basis._polynomial import PolynomialBasis
from missratio.basis._transformer import TransformerBasis

_BY_NAME: dict[str, type[Basis]] = {
    "linear": LinearBasis,
    "polynomial": PolynomialBasis,
    "gaussian": GaussianBasis,
}


def as_basis(basis: Any) -> Basis:
    """Resolve the ``basis`` parameter of an estimator.

    Parameters
    ----------
    basis : {"linear", "polynomial", "gaussian"}, Basis or scikit-learn transformer
        A name gives a new basis with its defaults. A `Basis` is returned as it is:
        clone it before fitting. Any other object with ``fit`` and ``transform`` is
        wrapped in a `TransformerBasis`.

    Returns
    -------
    Basis
        Not fitted, unless a fitted one was given.

    Examples
    --------
    >>> from missratio.basis import as_basis
    >>> as_basis("polynomial")
    PolynomialBasis()
    >>> from sklearn.preprocessing import SplineTransformer
    >>> as_basis(SplineTransformer())
    TransformerBasis(transformer=SplineTransformer())
    """
    if isinstance(basis, str) and basis in _BY_NAME:
        return _BY_NAME[basis]()
    if isinstance(basis, Basis):
        return basis
    is_class = isinstance(basis, type)
    if not is_class and hasattr(basis, "fit") and hasattr(basis, "transform"):
        return TransformerBasis(basis)
    raise TypeError(
        f"basis must be {listed(_BY_NAME)}, a Basis, or a scikit-learn transformer; "
        f"got {_what_came(basis)}"
    )


def _what_came(basis: Any) -> str:
    """Say what isn't a basis, and what was probably meant."""
    if isinstance(basis, type):
        name = basis.__name__
        return f"the class {name}. Give an instance of it: {name}(...)."
    if isinstance(basis, str):
        return f"{basis!r}.{did_you_mean(basis, _BY_NAME)}"
    kind = type(basis).__name__
    return f"{basis!r} of type {kind}, which has no fit and transform."
