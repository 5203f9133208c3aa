"""The wording that errors about names and choices share."""

import re
from collections.abc import Iterable, Sequence
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


def with_column_names(text: str, names: Sequence[str]) -> str:
    """A text with columns' own names for x0, x1, …, as estimators of arrays call them.

    Examples
    --------
    >>> with_column_names("Feature(s) ['x1'] are constant.", ["pulse", "sugar"])
    "Feature(s) ['sugar'] are constant."
    """

    def named(found: re.Match[str]) -> str:
        place = int(found[1])
        return names[place] if place < len(names) else found[0]

    return re.sub(r"\bx(\d+)\b", named, text)
