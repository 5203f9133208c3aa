"""What thresholds guarantee, as data and in words: one, several classes, groups."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.hints import listed
from missratio._base.reading import column_names
from missratio._base.storable import storable
from missratio.learning import LearnedMissingness
from missratio.missingness import LogisticMissingness

if TYPE_CHECKING:
    from missratio.classifier.estimators import ClassTable
    from missratio.classifier.promise import Promise

SHOWN_COLUMNS = 20


@storable()
@dataclass(frozen=True)
class Certificate:
    """The guarantee P(type I error > α) ≤ δ of a calibrated classifier.

    Parameters
    ----------
    alpha, delta : float
    rule : str
        The rule that chose the threshold.
    controlled_class, other_class : object
        Rows of the controlled class are classified as the other one with probability α
        at most.
    deployment : {"complete", "as-observed"}
        Whether the guarantee is for complete rows, or for rows that lose values just as
        the calibration rows did.
    rows, observed : int
        Calibration rows, and how many of them were observed.
    effective_rows : float
        Kish's effective number of rows under their weights.
    threshold : float
        Rows that score above are classified as the other class; infinite where none is.
    estimated_error : float
        The (weighted) share of calibration rows above the threshold.
    error_bound : float
        What the type I error is below with probability 1 − δ: α, or less where no order
        statistic comes closer.
    certified : bool
        False where no threshold could be certified and every row is classified as the
        controlled class.
    assumptions : tuple of str
        What the guarantee rests on.
    checks : tuple of str
        What was tested of it, and with which result.
    missingness_delta : float
        The part of δ that a learned φ may be out of its band with; 0 for a known φ.
    sensitivity : float or None
        Γ, the largest factor by which the odds of being missing may be wrong, either
        way, before the guarantee fails. For a learned φ beyond what its region allows.
        None where nothing is missing or nothing is certified.
    looked_up, not_found : int
        Incomplete rows that were drawn to be looked up, and those of them that were not
        found, which count as errors.
    columns : tuple or None
        The columns that the classifier uses; None for all. A row is complete where
        these are observed.
    """

    alpha: float
    delta: float
    rule: str
    controlled_class: Any
    other_class: Any
    deployment: str
    rows: int
    observed: int
    effective_rows: float
    threshold: float
    estimated_error: float
    error_bound: float
    certified: bool
    assumptions: tuple[str, ...]
    missingness_delta: float = 0.0
    sensitivity: float | None = None
    checks: tuple[str, ...] = ()
    looked_up: int = 0
    not_found: int = 0
    columns: tuple[Any, ...] | None = None

    @property
    def valid_while(self) -> str:
        """Until when the certificate holds."""
        return (
            f"as long as new {rows_of(self.controlled_class)} come from the same "
            "population as the calibration rows, and neither the model nor the "
            "threshold is changed"
        )

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data; a number that isn't finite is None."""
        data = {**asdict(self), "valid_while": self.valid_while}
        for name in ("threshold", "sensitivity"):
            if data[name] is not None and not math.isfinite(data[name]):
                data[name] = None
        return data

    def __str__(self) -> str:
        """The certificate in words."""
        if not self.certified:
            return (
                f"No threshold could be certified at alpha={self.alpha:g}, "
                f"delta={self.delta:g} from {self.rows:,} calibration rows: every row "
                f"is classified as {named(self.controlled_class)}, so the error is 0 "
                "and the power is 0."
            )
        size = ""
        if self.observed < self.rows:
            # No powers of ten, however many rows there are.
            effective = self.effective_rows
            shown = f"{effective:.4g}" if effective < 1000.0 else f"{effective:,.0f}"
            size = f", of which {self.observed:,} are complete (effective sample size "
            size += f"{shown})"
        lines = [
            f"{_claim(self)}. The chance that this is wrong is at most "
            f"{percent(self.delta)}, over the draw of the calibration rows.",
            f"Rule {self.rule!r} chose the threshold {self.threshold:.6g} from "
            f"{self.rows:,} calibration rows{size}. The estimated error is "
            f"{percent(self.estimated_error)}, the bound {percent(self.error_bound)}.",
        ]
        if self.columns is not None:
            names = listed(self.columns, SHOWN_COLUMNS)
            lines.append(
                f"It uses {len(self.columns)} column(s) alone, {names}: a row is "
                "complete where these are observed."
            )
        lines += ["It assumes:", *(f"- {each}." for each in self.assumptions)]
        if self.looked_up:
            lost = f"of which {self.not_found} were not found and count as errors"
            lines.append(
                f"{self.looked_up} incomplete calibration rows were looked up, "
                f"{lost if self.not_found else 'and all were found'}."
            )
        if self.missingness_delta:
            lines.append(
                "φ, the probability of being missing, is not known exactly. The "
                "certificate takes the worst φ that is left possible. Of delta, "
                f"{self.missingness_delta:.3g} is kept for φ being worse than that."
            )
        lines += on_sensitivity(self.sensitivity, bool(self.missingness_delta))
        lines += [f"Tested: {check}." for check in self.checks]
        return "\n".join([*lines, f"It holds {self.valid_while}."])


def on_sensitivity(sensitivity: float | None, learned: bool = False) -> list[str]:
    """How far the odds of being missing may be wrong, beyond what was learned."""
    if sensitivity is None:
        return []
    if math.isinf(sensitivity):
        return ["The odds of being missing may be wrong by more than 1000 times."]
    # Up to this Γ a small error in φ undoes the guarantee.
    if sensitivity < 1.05:
        exact = "It has no slack: it needs φ to be exact."
        return ["Beyond that it has no slack." if learned else exact]
    return [
        "It still holds if the odds of being missing are wrong by a factor of up to "
        f"Γ = {sensitivity:.3g}, either way."
    ]


def percent(share: float) -> str:
    """A share as a percentage, with three digits."""
    return f"{100.0 * share:.3g}%"


def named(label: Any) -> str:
    """A class in a sentence, or several."""
    if isinstance(label, tuple):
        return " or ".join(map(named, label))
    return repr(label) if isinstance(label, str) else f"class {label}"


def rows_of(label: Any) -> str:
    """A class's rows in a sentence."""
    return f"{label!r} rows" if isinstance(label, str) else f"class-{label} rows"


def _claim(certificate: Certificate, where: str = "") -> str:
    """What a certificate promises, without its chance to be wrong."""
    complete = certificate.deployment == "complete"
    return (
        f"At most {percent(certificate.alpha)} of {'complete ' * complete}"
        f"{rows_of(certificate.controlled_class)}{where}"
        f"{'' if complete else ', as they are observed,'} are classified as "
        f"{named(certificate.other_class)}"
    )


def assumptions(
    promise: Promise, table: ClassTable, cap: float | None, looked_up: bool
) -> tuple[str, ...]:
    """What a guarantee rests on.

    Parameters
    ----------
    promise : Promise
    table : ClassTable
    cap : float or None
        The largest weight that a row may have to be classified as the other class.
    looked_up : bool
        Whether incomplete rows were drawn and looked up, instead of a model.
    """
    label, model = promise.label, promise.model
    # 1. Where rows come from.
    drawn = (
        "the calibration rows were drawn independently from the same population as the "
        f"{rows_of(label)} to be classified"
    )
    before = f"{drawn}, as they were before values went missing"
    reach = "rows with a missing value are always classified as "
    reach += named(label if promise.fallback is None else promise.fallback)
    # 2. How values go missing.
    if table.deployment == "as-observed":
        premises: tuple[str, ...] = (f"{drawn}, and lose values just as these do",)
    elif model is not None:
        if cap is not None:
            reach += ", and so are rows that go missing with probability above "
            reach += f"{round(1 - 1 / cap, 5):.3g}"
        blocks = getattr(model, "blocks", ())
        further = any(set(block.inputs) - set(block.columns) for block in blocks)
        on = "its own value" + " and the columns that φ names" * further
        how = (
            "entries go missing independently of each other, given the row, and each "
            f"with a probability that depends on {on} alone (what the other "
            "columns and the label add can't be tested without looked-up values)"
        )
        if model.rowwise:
            how = (
                "a whole row goes missing with a probability that depends on its own "
                "values alone"
            )
        often = f"this probability, φ, is that of {model!r}"
        columns = column_names(table.X) or ()
        if columns and isinstance(model, LogisticMissingness) and not model.rowwise:
            # Columns that lose nothing are not worth a word.
            given = model.intercept, model.coef
            start, slope = (np.resize(x, len(columns)).tolist() for x in given)
            pairs = {x: (start[j], slope[j]) for j, x in enumerate(columns)}
            lossy = {x: pair for x, pair in pairs.items() if pair[0] > -math.inf}
            often = f"φ is that of LogisticMissingness.from_columns({lossy})"
        if model.source:
            often = f"φ is as {model.source} says"
        if model.learned:
            often = "the log-odds of being missing are linear in the values"
            parts = [block.model for block in blocks] or [model]
            base: Any = getattr(model, "base", model)
            every = [base, *(block.model for block in blocks)]
            # A category is meant by an indicator of one of its levels.
            stated = [name for part in every for name in getattr(part, "stated", ())]
            learned = [x for part in every for x in getattr(part, "evidence", ()) if x]
            known = [x for part in parts for x in getattr(part, "evidence", ()) if x]
            if stated:
                names = listed(name.rpartition("=")[0] or name for name in stated)
                often = f"φ of {names} is logistic in the value, within what was "
                often += "stated"
                if len(stated) < len(learned):
                    often += ", and that of other columns as well"
            elif any(evidence.n_revealed for evidence in known):
                often += ", and those looked up were drawn at random among the missing "
                often += "ones"
            else:
                often += " (the other columns alone hardly tell such a φ from a step "
                often += "or a bump; looked-up values do)"
            if isinstance(model, LearnedMissingness) and not (model.checks or stated):
                often += "; no test of this was made"
        if promise.odds_factor != 1.0:
            factor = f"{promise.odds_factor:.3g}"
            often += f"; its odds may be up to {factor} times as large or small"
        premises = (before, how, often, reach)
    elif looked_up:
        premises = (
            before,
            "rows to look up were drawn at random among the incomplete ones, and how "
            "many has nothing to do with their values",
            "what was found is true",
            reach,
            "nothing about why values are missing",
        )
    else:
        premises = (drawn, "none of their values is missing")
    unit = (
        "one row of each unit calibrates, drawn at random: the error is that of a "
        "random row of a random unit, so a unit counts once, however many rows it has"
    )
    return premises if table.units is None else (*premises, unit)


@dataclass(frozen=True)
class Certificates:
    """The guarantee P(some promise is broken) ≤ δ: a certificate for each promise.

    Each has a part of δ, and they fail together with the sum of the parts at most,
    however they depend on each other; or thresholds have moved together, and each is
    certified at all of δ.

    Parameters
    ----------
    delta : float
    certificates : tuple of Certificate
    """

    delta: float
    certificates: tuple[Certificate, ...]
    _whose: ClassVar[str] = ""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, each thing once."""
        every = (kept.assumptions for kept in self.certificates)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(every)))

    @property
    def sensitivity(self) -> float | None:
        """Γ of the promise with the least; None where none is missing not at random."""
        known = [kept.sensitivity for kept in self.certificates]
        return min((x for x in known if x is not None), default=None)

    @property
    def valid_while(self) -> str:
        """Until when the certificate holds."""
        return (
            f"as long as new rows of each {self._whose} come from the same population "
            "as its calibration rows, and neither the model nor a threshold is changed"
        )

    def _promised(self, kept: Certificate, group: Any) -> str:
        """A promise in words."""
        where = "" if group is None else f" in group {group!r}"
        if not kept.certified:
            return (
                f"All rows{where} are classified as {named(kept.controlled_class)}: "
                f"{kept.rows} calibration rows are too few for {percent(kept.alpha)}, "
                "so the power there is 0."
            )
        size = f"{kept.rows} calibration rows"
        if kept.observed < kept.rows:
            size += f", {kept.observed} of them complete"
        return (
            f"{_claim(kept, where)} (estimated {percent(kept.estimated_error)}, bound "
            f"{percent(kept.error_bound)}; rule {kept.rule!r}, {size}, delta "
            f"{kept.delta:.3g})."
        )

    def __str__(self) -> str:
        """The certificate in words."""
        groups = getattr(self, "groups", itertools.repeat(None))
        pairs = zip(self.certificates, groups, strict=False)
        return "\n".join(
            [
                "All of this holds together. The chance that any of it is wrong is at "
                f"most {percent(self.delta)}, over the draw of the calibration rows:",
                *(f"- {self._promised(*pair)}" for pair in pairs),
                "It assumes:",
                *(f"- {assumption}." for assumption in self.assumptions),
                *on_sensitivity(self.sensitivity),
                f"It holds {self.valid_while}.",
            ]
        )


@storable()
@dataclass(frozen=True)
class MulticlassCertificate(Certificates):
    """The guarantee P(some class's error is above its α) ≤ δ.

    Parameters
    ----------
    delta : float
    certificates : tuple of Certificate
        One for each bounded class, in the order in which thresholds were chosen. Its
        `other_class` lists the classes that a row of it must not get.
    order : tuple or None
        The classes, the most severe first, where they are ordered.
    fallback : object
        The class of a row that can't be scored.
    """

    order: tuple[Any, ...] | None
    fallback: Any
    _whose: ClassVar[str] = "bounded class"

    def __getitem__(self, label: Any) -> Certificate:
        """The certificate of one class."""
        for certificate in self.certificates:
            if certificate.controlled_class == label:
                return certificate
        known = [certificate.controlled_class for certificate in self.certificates]
        raise KeyError(f"{label!r} has no certificate: {known} have.")

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data; a number that isn't finite is None."""
        return {
            "delta": self.delta,
            "order": None if self.order is None else list(self.order),
            "fallback": self.fallback,
            "valid_while": self.valid_while,
            "classes": [certificate.to_dict() for certificate in self.certificates],
        }


@storable()
@dataclass(frozen=True)
class GroupedCertificate(Certificates):
    """The guarantee P(some group's error is above its α) ≤ δ.

    Parameters
    ----------
    delta : float
    certificates : tuple of Certificate
    groups : tuple
        The group that each is about.
    """

    groups: tuple[Any, ...]
    _whose: ClassVar[str] = "group"

    @property
    def thresholds(self) -> dict[Any, float]:
        """By group; infinite where none is certified."""
        limits = (certificate.threshold for certificate in self.certificates)
        return dict(zip(self.groups, limits, strict=True))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, each thing once."""
        return (
            *super().assumptions,
            "within each group the calibration rows were drawn from the same "
            "population as that group's rows to be classified",
        )

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data; a number that isn't finite is None."""
        promises = [
            {
                "kind": "error",
                "group": group,
                "level": certificate.alpha,
                "bound": certificate.error_bound,
                "estimated": certificate.estimated_error,
                "rows": certificate.rows,
                "delta": certificate.delta,
                "threshold": certificate.threshold if certificate.certified else None,
                "certified": certificate.certified,
            }
            for group, certificate in zip(self.groups, self.certificates, strict=True)
        ]
        return {
            "delta": self.delta,
            "promises": promises,
            "assumptions": list(self.assumptions),
            "valid_while": self.valid_while,
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """What each group gets, a row for each promise.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
            A row for each group.
        """
        promises = self.to_dict()["promises"]
        names = ("certified", "bound", "estimated", "rows", "delta")
        keys = {"promise": "kind", "group": "group", "asked": "level"}
        keys |= {name: name for name in names}
        columns = {name: [x[key] for x in promises] for name, key in keys.items()}
        columns["group"] = list(map(str, self.groups))
        return nw.from_dict(columns, backend=backend).to_native()
