"""Errors and warnings as data: each says what it is about, and who shows it words it.

An error's or warning's first argument is a `Message`: the claim, the class and columns
that it is about, and the remedies. ``str(error)`` words it for Python; the command line
and the report page word the same message with the columns of a table and with options.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from sklearn.exceptions import ConvergenceWarning

from missratio._base.hints import listed

_SHOWN = 10


class Remedy(StrEnum):
    """What to do about an error; the value is how Python says it."""

    PENALTY = "set l2 > 0"
    COLUMN_PENALTY = "add a ridge penalty (KLIEP(l2=0.01) is a start)"
    FEWER_FEATURES = "use fewer features"
    MORE_ROWS = "bring more rows"
    DROP_COLUMNS = "drop them"
    MODEL = "say why values are missing, missingness={{{label!r}: model}}"
    COMPLETE_CASES = 'take complete cases by missingness="ignore"'
    AS_OBSERVED = "use deployment='as-observed'"
    RAISE_LEVELS = "raise alpha or delta"
    OTHER_RULE = "choose another rule"
    REJECT_ALL = "set on_infeasible='reject_all'"
    OVERWRITE = "force=True to overwrite it"
    LOOKED_UP = "use looked-up values as data (plan_queries and inclusion=)"
    OTHER_FORM = "take another form of φ"
    ODDS_FACTOR = "state an odds_factor of {factor:g} or more, to cover what was found"


@dataclass(frozen=True)
class Message:
    """What went wrong, about what, and what to do about it.

    Parameters
    ----------
    claim : str
        A template of one or more sentences. It may refer to ``{label}``, ``{columns}``
        and the names in `facts`.
    label : object
        The class that it is about.
    columns : tuple of int
        Positions of the columns of X that it is about.
    names : tuple, optional
        What these columns are called, as far as whoever raised the error knows.
    remedies : tuple of Remedy or str
        Any of them helps. Templates as the claim.
    file : Path, optional
        The file that it is about.
    facts : mapping from str
        What else the templates refer to.

    Examples
    --------
    >>> from missratio.exceptions import Message, Remedy
    >>> message = Message(
    ...     "Feature(s) {columns} of class {label!r} are constant.",
    ...     label="x1",
    ...     columns=(1,),
    ...     remedies=(Remedy.DROP_COLUMNS, Remedy.PENALTY),
    ... )
    >>> str(message)
    "Feature(s) 'x1' of class 'x1' are constant. Drop them, or set l2 > 0."
    >>> options = {Remedy.PENALTY: "take --method trees"}
    >>> message.named(["pulse", "sugar"]).phrased(options)
    "Feature(s) 'sugar' of class 'x1' are constant. Drop them, or take --method trees."
    """

    claim: str
    label: Any = None
    columns: tuple[int, ...] = ()
    names: tuple[Any, ...] | None = None
    remedies: tuple[str, ...] = ()
    file: Path | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def plain(cls, text: str, *, file: Path | None = None) -> Message:
        """A message of a text as it is."""
        return cls("{text}", facts={"text": text}, file=file)

    def __str__(self) -> str:
        return self.phrased()

    def phrased(self, words: Mapping[str, str] = MappingProxyType({})) -> str:
        """The message for someone who knows the remedies by other names.

        Parameters
        ----------
        words : mapping from Remedy to str
            What to say instead of Python's words; "" for nothing.
        """
        names = self.names
        if names is None:
            names = tuple(f"x{j}" for j in self.columns)
        fields = {**self.facts, "label": self.label, "columns": listed(names, _SHOWN)}
        text = self.claim.format(**fields)
        worded = (words.get(remedy, str(remedy)) for remedy in self.remedies)
        said = list(dict.fromkeys(text.format(**fields) for text in worded if text))
        if said:
            choices = ", or ".join(filter(None, (", ".join(said[:-1]), said[-1])))
            text += f" {choices[:1].upper()}{choices[1:]}."
        return text if self.file is None else f"{self.file}: {text}"

    def named(self, names: Sequence[str]) -> Message:
        """The same with other names, those of all columns of X.

        Features that are no columns of X keep theirs.
        """
        if any(j >= len(names) for j in self.columns):
            return self
        return replace(self, names=tuple(names[j] for j in self.columns))


class Explained:
    """An error or a warning whose message is data."""

    args: tuple[Any, ...]

    @property
    def message(self) -> Message:
        """What it says, as data."""
        first = self.args[0] if self.args else ""
        return first if isinstance(first, Message) else Message.plain(str(first))

    def about(self, file: Path) -> Self:
        """The same of a file, unless it says already of which file it is."""
        message = self.message
        if message.file is not None or str(file) in str(message):
            return self
        return self._saying(replace(message, file=file))

    def named(self, names: Sequence[str]) -> Self:
        """The same with other names, those of all columns of X."""
        return self._saying(self.message.named(names))

    def relabelled(self, labels: Mapping[Any, Any]) -> Self:
        """The same with another name for its class."""
        label = self.message.label
        return self._saying(replace(self.message, label=labels.get(label, label)))

    def _saying(self, message: Message) -> Self:
        other = copy(self)
        other.args = (message,)
        return other


class DataError(Explained, ValueError):
    """Rows that nothing can be estimated from, or not what was asked for."""

    @classmethod
    def of_class(cls, label: Any, text: str) -> Self:
        """What is wrong with a class, or with all rows for None.

        A classifier has its own labels, and the user others: the label is data.
        """
        claim = "X: {text}" if label is None else "Class {label!r}: {text}"
        return cls(Message(claim, label=label, facts={"text": text}))


class UnexplainedMissingError(DataError):
    """Values are missing, and nothing says why."""


class TableError(DataError):
    """A table in a file that can't be used: what is wrong, where, and what to do."""


class UnreadableFileError(OSError):
    """A Parquet file can't be read, or was written again between two passes."""


class DestinationError(Explained, FileExistsError):
    """A file that isn't overwritten."""


class NoCertificateError(Explained, ValueError):
    """No threshold can be certified, with what it would take."""


class NotSolvedWarning(Explained, ConvergenceWarning):
    """An optimum was not reached."""


class NoFiniteOptimumWarning(NotSolvedWarning):
    """The objective falls for ever in some direction: it has no finite optimum."""


class WeightConcentrationWarning(Explained, UserWarning):
    """Half of the total weight sits on a few of the observed rows."""


class FlatRatioWarning(Explained, UserWarning):
    """A ratio is one everywhere, though another one had the smaller loss."""


class SmallSampleWarning(Explained, UserWarning):
    """Few rows decide, and a promise that holds in large samples can't be trusted."""


def warn(warning: Warning) -> None:
    """Warn as from the line that called missratio."""
    package, level, frame = __name__.partition(".")[0], 2, sys._getframe(1)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != package:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


@contextmanager
def about_file(file: Path) -> Iterator[None]:
    """Let errors about data say which file it is from."""
    try:
        yield
    except DataError as error:
        raise error.about(file) from error
