"""Classes that a model file may hold: each says so where it is defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

Class = TypeVar("Class", bound=type)


class Storable(NamedTuple):
    """What of a class a loaded file has to be checked for."""

    finite: frozenset[str] = frozenset()
    """Attributes that are finite numbers, or arrays or lists of them."""
    counts: frozenset[str] = frozenset()
    """Attributes that say how many things are to be made."""


STORABLE: dict[type, Storable] = {}


def storable(
    *, finite: Sequence[str] = (), counts: Sequence[str] = ()
) -> Callable[[Class], Class]:
    """Let model files hold objects of the class that is decorated.

    It goes above `@dataclass`. Subclasses say so themselves, and what must be finite in
    a class must be so in them.

    Parameters
    ----------
    finite : sequence of str
        Attributes that must be finite numbers.
    counts : sequence of str
        Attributes that say how many things are to be made, of which a file may not ask
        for millions.
    """

    def register(cls: Class) -> Class:
        STORABLE[cls] = Storable(frozenset(finite), frozenset(counts))
        return cls

    return register
