"""What is asked of a fit, and what contradicts itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from missratio._base.hints import did_you_mean, listed

IGNORE = "ignore"
LEARN = "learn"
# No table is long enough to certify a lower one.
LEAST_LEVEL = 1e-12
CHOICES = {
    "--deployment": ("complete", "as-observed"),
    "--on-infeasible": ("raise", "reject_all"),
}
# How options that are given can be told, and what they are called in messages.
NAMES = {
    "several": "--alpha LABEL=SHARE",
    "controlled": "--controlled",
    "versus": "--versus",
    "queries": "--queries",
    "learn": "--missingness learn",
    "as_observed": "--deployment as-observed (or --missingness ignore)",
    "target_table": "--target-table",
    "standard_errors": "--standard-errors",
    "reject_all": "--on-infeasible reject_all",
}
_DENSITY = "another population needs the density of complete rows"
CONFLICTS = [
    ("groups", "several",
     "the error of one class (--controlled) is bounded in each group"),
    ("groups", "target_table", "another population is for one threshold"),
    ("groups", "standard_errors", "they are for models without groups"),
    ("several", "controlled", "it is named by --alpha LABEL=SHARE already"),
    ("several", "versus", "all labels are told apart"),
    ("several", "queries",
     "in Python, fill look-ups in by revealed.fill and give inclusion= to "
     "MulticlassNeymanPearsonClassifier.fit; or take --missingness learn"),
    ("several", "target_table",
     "another population is for one bounded class (--controlled)"),
    ("several", "standard_errors", "they are those of one density ratio"),
    ("several", "reject_all", "a row can't be given to several classes"),
    ("target_table", "queries", _DENSITY),
    ("target_table", "as_observed", _DENSITY),
]  # fmt: skip
"""What doesn't go together, and why."""
_SUBJECTS = {
    "groups": "--groups and {} don't go together: {}. Leave out one.",
    "target_table": "--target-table and {} don't go together: {}. Leave out one.",
    "several": "{} doesn't go with bounds on several classes: {}. Leave it out.",
}


@dataclass(frozen=True)
class Bounds:
    """Bounds on the errors of several classes.

    Parameters
    ----------
    levels : mapping from str to float
        α of each bounded class, by its label as it was typed.
    order : tuple of str, or None
        The classes, the most severe first, where they are ordered.
    """

    levels: Mapping[str, float]
    order: tuple[str, ...] | None = None


@dataclass(frozen=True)
class GroupBounds:
    """Bounds on the controlled class's error in each of several groups.

    Parameters
    ----------
    column : str
        That says which group each row is in.
    levels : mapping from str to float
        α of some groups, by their names as they were typed.
    shared : bool
        Whether one threshold serves all rows, and keeps `levels` too.
    """

    column: str
    levels: Mapping[str, float]
    shared: bool = False


@dataclass(frozen=True)
class FitOptions:
    """What is asked of a fit.

    Parameters
    ----------
    controlled : str or None
        The label whose error is bounded, as it is written in the file; None where
        those of several classes are.
    alpha, delta : float
    missingness : str or None
        A file that says why values are missing, "learn" or "ignore".
    queries : Path or None
        A plan that was filled in.
    method : str
    deployment : {"complete", "as-observed"}
    calibration_size : float
    rule : str
    odds_factor : float
    on_infeasible : {"raise", "reject_all"}
    seed : int
    standard_errors : bool
        Whether the model is to give standard errors of its scores.
    compare_seconds : float
        How long the method "auto" may compare methods; 0 for no comparison.
    versus : str or None
        The other label where there are more than two, or "rest" for all others.
    several : Bounds or None
        Bounds on the errors of several classes, in place of `controlled` and `alpha`.
    target_table : Path or None
        Rows of another population, without labels, that the certificate is to be for.
    groups : GroupBounds or None
        Groups of rows that have a promise of their own.
    """

    controlled: str | None
    alpha: float = 0.05
    delta: float = 0.05
    missingness: str | None = None
    queries: Path | None = None
    method: str = "auto"
    deployment: str = "complete"
    calibration_size: float = 0.5
    rule: str = "auto"
    odds_factor: float = 1.0
    on_infeasible: str = "raise"
    seed: int = 0
    standard_errors: bool = False
    compare_seconds: float = 60.0
    versus: str | None = None
    several: Bounds | None = None
    target_table: Path | None = None
    groups: GroupBounds | None = None

    @property
    def ignores(self) -> bool:
        """Whether missing values are left out of account."""
        return self.missingness == IGNORE

    @property
    def phi_file(self) -> Path | None:
        """The file that says why values are missing."""
        if self.missingness in (None, IGNORE, LEARN):
            return None
        assert self.missingness is not None
        return Path(self.missingness)

    @property
    def inputs(self) -> list[Path]:
        """The files that are read beside the table."""
        given = self.phi_file, self.queries, self.target_table
        return [path for path in given if path is not None]

    @property
    def as_observed(self) -> bool:
        """Whether rows to be classified lose values as these did."""
        return self.ignores or self.deployment == "as-observed"

    @property
    def learn(self) -> bool:
        """Whether φ is learned from the table."""
        return self.missingness == LEARN

    @property
    def reject_all(self) -> bool:
        """Whether a fit that certifies nothing is a model, too."""
        return self.on_infeasible == "reject_all"

    def given(self, *names: str) -> list[str]:
        """Of some options, those that are asked for, as messages call them."""
        return [
            NAMES[name] for name in names if getattr(self, name) not in (None, False)
        ]

    def check(self) -> None:
        """Refuse what isn't among the choices, and what contradicts itself."""
        for option, choices in CHOICES.items():
            value = getattr(self, option[2:].replace("-", "_"))
            if value not in choices:
                hint = did_you_mean(value, choices)
                raise ValueError(
                    f"{option} must be one of {listed(choices)}, got {value!r}.{hint}"
                )
        if self.several is None and self.controlled is None:
            raise ValueError(
                "Say which error to bound: --controlled LABEL for one class, or "
                "--alpha LABEL=SHARE for each of several."
            )
        for subject, other, reason in CONFLICTS:
            if getattr(self, subject) is not None and self.given(other):
                raise ValueError(_SUBJECTS[subject].format(NAMES[other], reason))
        if self.groups is not None and self.groups.shared and not self.groups.levels:
            raise ValueError(
                "--shared-threshold makes a promise to the groups that --group-alpha "
                "GROUP=SHARE names, and to all rows: name some, or leave it out."
            )
        if self.missingness not in (None, LEARN) and self.queries is not None:
            raise ValueError(
                "--missingness and --queries both say why values are missing: give "
                "one, or --missingness learn beside --queries."
            )
        told = self.missingness is not None or self.queries is not None
        if self.deployment == "as-observed" and told and not self.ignores:
            raise ValueError(
                "--deployment as-observed needs no model of missingness, and has no "
                "use for one: leave out --missingness and --queries."
            )
        self._check_numbers()

    def _check_numbers(self) -> None:
        levels = {"--alpha": self.alpha, "--delta": self.delta}
        if self.groups is not None:
            named = self.groups.levels.items()
            levels |= {f"--group-alpha {group}": level for group, level in named}
        if self.several is not None:
            named = self.several.levels.items()
            levels |= {f"--alpha {label}": level for label, level in named}
        for option, number in levels.items():
            if not LEAST_LEVEL <= number < 1.0:
                meant = f" Did you mean {number:g}%?" if 1.0 <= number < 100.0 else ""
                raise ValueError(
                    f"{option} must lie between 0 and 1, and be {LEAST_LEVEL:g} or "
                    f"more: got {number}.{meant}"
                )
        if not 0.0 < self.calibration_size < 1.0:
            raise ValueError(
                "--calibration-size must be a share of the rows, between 0 and 1: got "
                f"{self.calibration_size:g}."
            )
        if not 0.0 <= self.compare_seconds < math.inf:
            raise ValueError(
                "--compare-seconds must be a time in seconds, 0 for no comparison: got "
                f"{self.compare_seconds}."
            )
