"""What a threshold is to guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from missratio.classifier._target import TargetRatio
from missratio.classifier._trust import ScoredRows, Trust
from missratio.missingness import Missingness
from missratio.ratio import check_choice
from missratio.threshold import LookUpRule, Rule, TargetRule, make_rule


@dataclass(frozen=True, slots=True)
class Promise:
    """What a threshold is to guarantee, and how it is chosen.

    Parameters
    ----------
    alpha, delta : float
    missingness_delta : float or None
        The part of δ that a learned φ may be out of its band with; None for half.
    odds_factor : float
    rule : str or Rule
    deployment : {"complete", "as-observed"}
    on_infeasible : {"raise", "reject_all"}
    controlled, other : object
        The controlled class, and the other.
    caps : bool
        Whether rows of large weight may be given up for a smaller bound, by giving
        them the controlled class.
    target : TargetRatio or None
        Of the population that the guarantee is for, where that is another.
    cap : float or None
        A cap that was chosen before.
    """

    alpha: float
    delta: float
    missingness_delta: float | None
    odds_factor: float
    rule: str | Rule
    deployment: str
    on_infeasible: str
    controlled: Any
    other: Any
    caps: bool = True
    target: TargetRatio | None = None
    cap: float | None = None

    def missingness_part(self, model: Missingness | None) -> float:
        """The part of δ that a learned φ may be out of its region with."""
        if model is None or not model.learned:
            return 0.0
        part = self.missingness_delta
        return self.delta / 2.0 if part is None else part

    def resolve_rule(
        self,
        rule: str | Rule,
        trust: Trust,
        training: ScoredRows | None,
        *,
        looked_up: bool = False,
    ) -> Rule:
        """The rule itself, prepared by the weights of training rows."""
        if looked_up and isinstance(rule, str):
            check_choice("rule", rule, ("auto", LookUpRule.name))
            return LookUpRule()
        known = None
        is_complete = trust.model is None and trust.target is None
        if training is not None and not is_complete:
            known = training.sample(trust)
        return make_rule(rule, training=known, complete=is_complete)

    def target_rule(self) -> Rule:
        """The rule for weights that may not average to one."""
        if isinstance(self.rule, Rule):
            return self.rule
        check_choice("rule", self.rule, ("auto", TargetRule.name))
        return TargetRule()
