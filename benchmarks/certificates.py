"""Thresholds with a certificate: every rule, the NP-ROC, and MAPIE's controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from draws import FloatArray
from mapie.risk_control import BinaryClassificationController
from measure import Result, Table, Target, Tell, check, race
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from missratio import NeymanPearsonClassifier, np_roc
from missratio.threshold import RULES, CalibrationSample, make_rule

ALPHA, DELTA, SHIFT = 0.05, 0.05, 1.5
N_LEVELS, N_CANDIDATES = 200, 100
AT_MOST_3_SORTS = Target("at most", 3.0)
WITHIN = Target("at most", 1.0)
AT_LEAST_50 = Target("at least", 50.0)


@dataclass(frozen=True)
class Law:
    """Scores N(0, 1) of class 0, of which rows are missing with probability φ."""

    name: str
    phi: Callable[[FloatArray], FloatArray] | None
    bound: float | None = None

    def draw(self, n_rows: int, seed: int) -> tuple[FloatArray, FloatArray | None]:
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal(n_rows)
        if self.phi is None:
            return scores, None
        missing = self.phi(scores)
        observed = rng.uniform(size=n_rows) >= missing
        return scores, np.where(observed, 1.0 / (1.0 - missing), 0.0)

    def sample(self, n_rows: int, seed: int) -> CalibrationSample:
        return CalibrationSample.build(*self.draw(n_rows, seed), self.bound)


COMPLETE = Law("complete", None, 1.0)
HIGH = Law("φ = 0.8·1{z > 0}", lambda z: 0.8 * (z > 0.0), 5.0)
LOW = Law("φ = 0.8·1{z < 0}", lambda z: 0.8 * (z < 0.0), 5.0)
FEW = Law("φ = 0.1·1{z > 0}", lambda z: 0.1 * (z > 0.0), 1.0 / 0.9)
UNBOUNDED = Law("φ = expit(z − 1)", lambda z: expit(z - 1.0))


def calibrate(
    rule: str,
    law: Law,
    drawn: tuple[FloatArray, FloatArray | None],
    training: CalibrationSample | None,
    alpha: float = ALPHA,
) -> float:
    """Sort the scores and choose the threshold."""
    sample = CalibrationSample.build(*drawn, law.bound, random_state=0)
    chooser = make_rule(rule, training=training, complete=law.phi is None)
    chosen = chooser.select(sample, alpha, DELTA)
    if chosen.threshold is None:
        return np.inf
    return chosen.threshold


def rules(tell: Tell, *, quick: bool) -> Table:
    n_rows = 20_000 if quick else 1_000_000
    repeats = 2 if quick else 7
    cases = [(rule, HIGH) for rule in RULES if rule not in ("auto", "binomial")]
    cases = [("binomial", COMPLETE), *cases]
    automatic = [("auto", law) for law in (COMPLETE, HIGH, LOW, FEW, UNBOUNDED)]
    results = []
    with threadpool_limits(1):
        for rule, law in [*cases, *automatic]:
            drawn = law.draw(n_rows, seed=0)
            training = None if law.phi is None else law.sample(n_rows, seed=1)
            case = f"{rule}, {law.name}"

            def ours(
                rule: str = rule,
                law: Law = law,
                drawn: Any = drawn,
                training: Any = training,
            ) -> float:
                return calibrate(rule, law, drawn, training)

            timings, chosen = race(
                {case: ours, "np.sort": lambda drawn=drawn: np.sort(drawn[0])},
                repeats,
                tell,
                warm_up=True,
            )
            error = float(norm.sf(chosen[case]))
            check(error <= ALPHA, f"{case}: the true error is {error:.4f}")
            seconds, sort = timings[case], timings["np.sort"]
            remark = f"true type I error {error:.4f} at α = {ALPHA:g}"
            against, ratio, target = "2 s", seconds.best / 2.0, WITHIN
            if rule == "auto":
                against, target = f"np.sort: {sort}", AT_MOST_3_SORTS
                ratio = seconds.best / sort.best
            results.append(Result(case, str(seconds), against, ratio, target, remark))
    return Table(
        f"Threshold rules: {n_rows:,} calibration rows, one thread",
        "time of missratio / the time against it",
        tuple(results),
        note="From scores and weights in memory, not sorted, to the threshold "
        f"(α = δ = {ALPHA:g}). Scores of class 0 are N(0, 1) and go missing by the φ "
        "named; training rows are sorted before the clock starts.",
    )


def curves(tell: Tell, *, quick: bool) -> Table:
    n_rows = 5000 if quick else 100_000
    other = np.random.default_rng(2).normal(SHIFT, 1.0, n_rows)
    levels = np.linspace(0.005, 0.5, N_LEVELS)
    results = []
    with threadpool_limits(1):
        for law in (COMPLETE, HIGH, LOW, UNBOUNDED):
            scores, weights = law.draw(n_rows, seed=0)
            training = None if weights is None else law.sample(n_rows, seed=1)

            def ours(
                scores: Any = scores,
                weights: Any = weights,
                bound: Any = law.bound if weights is not None else None,
                training: Any = training,
            ) -> Any:
                return np_roc(
                    scores,
                    other,
                    delta=DELTA,
                    alphas=levels,
                    weights=weights,
                    bound=bound,
                    training=training,
                )

            timings, found = race(
                {law.name: ours}, 2 if quick else 5, tell, warm_up=True
            )
            seconds, curve = timings[law.name], found[law.name]
            loss = np.abs(curve.power - norm.sf(norm.isf(levels) - SHIFT))[
                levels >= 0.05
            ].max()
            used = ", ".join(sorted(set(curve.rule)))
            results.append(
                Result(
                    f"auto, {law.name}",
                    str(seconds),
                    "1 s",
                    seconds.best,
                    WITHIN,
                    f"{used}; within {loss:.3f} of the oracle's power from α = 0.05 on",
                )
            )
    return Table(
        f"NP-ROC: {N_LEVELS} levels, {n_rows:,} rows a class, one thread",
        "time of missratio / the time against it",
        tuple(results),
        note="`np_roc` with its rule `auto`, its bands included; weighted curves have "
        "as many training rows, scored and sorted beforehand.",
    )


def controller(tell: Tell, *, quick: bool) -> Table:
    n_rows = 2000 if quick else 10_000
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(0.0, 1.0, (n_rows, 1)), rng.normal(SHIFT, 1.0, (n_rows, 1))]
    )
    model = LogisticRegression().fit(X, np.repeat([0, 1], n_rows))
    X0 = rng.normal(0.0, 1.0, (n_rows, 1))
    y0 = np.zeros(n_rows, dtype=int)
    scores, probability = model.decision_function(X0), model.predict_proba(X0)
    candidates = np.linspace(0.0, 0.99, N_CANDIDATES)
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])

    def mapie(predict: Callable[[Any], Any], rows: Any) -> float:
        fitted = BinaryClassificationController(
            predict,
            "fpr",
            ALPHA,
            confidence_level=1.0 - DELTA,
            list_predict_params=candidates,
        ).calibrate(rows, y0)
        if fitted.best_predict_param is None:
            return np.inf
        share = fitted.best_predict_param
        return float(np.log(share) - np.log1p(-share))

    def classifier() -> float:
        made = NeymanPearsonClassifier(model, alpha=ALPHA, delta=DELTA)
        return float(made.calibrate(X0).threshold_)

    cases = {
        "from scores": (
            lambda: calibrate("auto", COMPLETE, (scores, None), None),
            lambda: mapie(lambda rows: rows, probability),
        ),
        "from rows, scoring included": (
            classifier,
            lambda: mapie(model.predict_proba, X0),
        ),
    }
    results = []
    with threadpool_limits(1):
        for case, (ours, theirs) in cases.items():
            timings, chosen = race(
                {f"{case}, missratio": ours, f"{case}, MAPIE": theirs},
                5 if quick else 30,
                tell,
                number=5 if quick else 25,
                warm_up=True,
            )
            (_, mine), (_, peer) = timings.items()
            errors = {
                name: float(norm.sf((threshold - intercept) / slope))
                for name, threshold in chosen.items()
            }
            for name, error in errors.items():
                check(0.0 < error <= ALPHA, f"{name}: the true error is {error:.4f}")
            remark = "true type I error {:.4f} against {:.4f}".format(*errors.values())
            results.append(
                Result(
                    case,
                    str(mine),
                    str(peer),
                    peer.best / mine.best,
                    AT_LEAST_50,
                    remark,
                )
            )
    return Table(
        f"Against MAPIE: {n_rows:,} rows of class 0, {N_CANDIDATES} thresholds",
        "time of MAPIE / time of missratio",
        tuple(results),
        note="`BinaryClassificationController` for `fpr` with its default correction, "
        "Bonferroni and Holm's, and the rule `binomial`, which looks at every "
        f"threshold; nothing is missing, and both certify α = {ALPHA:g} at "
        f"δ = {DELTA:g}. From rows, both score by the same `LogisticRegression`.",
    )
