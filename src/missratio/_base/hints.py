"""The wording that errors about names and choices share."""

from collections.abc import Iterable
from difflib import get_close_matches


def listed(choices: Iterable[object]) -> str:
    """List choices for an error message.

    Examples
    --------
    >>> listed(["linear", "gaussian"])
    "'linear', 'gaussian'"
    """
    return ", ".join(repr(choice) for choice in choices)


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
