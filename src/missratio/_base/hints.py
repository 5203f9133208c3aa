"""Parameters: how they are checked, and the wording that errors about them share.

Nothing here loads NumPy or scikit-learn before it is used: words of a command's option
must not wait for that.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any

_LONGEST = 80
_KINDS = {bool: "booleans", int: "integers", float: "floats", str: "strings"}


def listed(choices: Iterable[object], most: int | None = None) -> str:
    """List choices for an error message, so many of them at most.

    Examples
    --------
    >>> listed(["linear", "gaussian"])
    "'linear', 'gaussian'"
    >>> listed(["linear", "gaussian"], most=1)
    "'linear' and 1 more"
    """
    words = [shown(choice) for choice in choices]
    more = 0 if most is None else len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def shown(name: object) -> str:
    """A name for a message, its beginning where it is long.

    Examples
    --------
    >>> shown("pulse")
    "'pulse'"
    """
    try:
        text = repr(name)
    except RecursionError:
        text = f"a nested {type(name).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Suggest the choice nearest to a misspelt word, or nothing.

    Examples
    --------
    >>> did_you_mean("gausian", ["linear", "gaussian"])
    " Did you mean 'gaussian'?"
    >>> did_you_mean("tree", ["linear", "gaussian"])
    ''
    """
    by_lower = {choice.lower(): choice for choice in choices}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def another_type(label: Any, known: Iterable[Any]) -> str:
    """Say that a label is known under another type, or nothing.

    Examples
    --------
    >>> another_type("0", [0, 1])
    " They are integers: write 0, not the string '0'."
    >>> another_type("2", [0, 1])
    ''
    """
    for other in known:
        if str(other) == str(label) and type(other) is not type(label):
            kind = _KINDS.get(type(other), f"of type {type(other).__name__}")
            wrong = "string" if isinstance(label, str) else type(label).__name__
            return f" They are {kind}: write {other!r}, not the {wrong} {label!r}."
    return ""


def nearest(label: Any, known: Sequence[Any]) -> str:
    """What a label that isn't known was meant to be, or nothing.

    Examples
    --------
    >>> nearest("1", [0, 1]), nearest("tre", ["tree"])
    (" They are integers: write 1, not the string '1'.", " Did you mean 'tree'?")
    """
    return another_type(label, known) or did_you_mean(str(label), map(str, known))


def check_number(name: str, value: Any) -> None:
    """Refuse what can't be compared with numbers.

    Examples
    --------
    >>> check_number("alpha", 0.05)
    """
    if not isinstance(value, Real):
        raise TypeError(
            f"{name} must be a number, got {value!r} of type {type(value).__name__}."
        )


def check_probability(name: str, value: Any) -> None:
    """Refuse what doesn't lie strictly between 0 and 1.

    Examples
    --------
    >>> check_probability("alpha", 0.05)
    """
    check_number(name, value)
    if not 0.0 < value < 1.0:
        hint = f" Write {value / 100:g} for {value}%." if 1 < value < 100 else ""
        raise ValueError(
            f"{name} must lie strictly between 0 and 1, got {value}.{hint}"
        )


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a parameter that isn't among its choices.

    Examples
    --------
    >>> check_choice("solver", "lbfgs", ("auto", "newton", "lbfgs"))
    """
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {list(choices)}, got {value!r}."
            f"{did_you_mean(str(value), map(str, choices))}"
        )


def check_real(value: Any, name: str, **limits: Any) -> None:
    """As scikit-learn's `check_scalar`, which lets NaN pass all limits."""
    from sklearn.utils import check_scalar

    check_scalar(value, name, Real, **limits)
    if value != value:
        raise ValueError(f"{name} == nan, must be a number.")


def generator(random_state: Any) -> Any:
    """A generator: the one given, or a new one from a seed, a RandomState or None."""
    import numpy as np

    given = isinstance(random_state, np.random.Generator)
    return np.random.default_rng(random_state if given else entropy(random_state))


def entropy(random_state: Any) -> Any:
    """What a `SeedSequence` takes: an int, or None for fresh entropy."""
    import numpy as np

    if isinstance(random_state, np.random.RandomState):
        return random_state.randint(2**31 - 1)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return random_state
