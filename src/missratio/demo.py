"""The main job on an embedded data set: ``python -m missratio.demo``.

scikit-learn's breast-cancer table loses values of its benign tumours by a known φ, and
ratios p(benign)/p(malignant) are learned from what is left. Since φ is known and the
complete table is at hand, each fit can be compared with the one that lost nothing.

Then malignant tumours are lost, and thresholds are chosen that clear at most a share α
of them. Since they are drawn from a known law, each threshold's true error is known.
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from missratio._typing import FloatArray, IntArray
from missratio.classifier import NeymanPearsonClassifier
from missratio.missingness import (
    LogisticMissingness,
    Missingness,
    StepMissingness,
    corrupt,
)
from missratio.ratio import KLIEP, BaseRatio, NaiveBayesRatio
from missratio.theory import oracle_threshold
from missratio.weights import WeightConcentrationWarning

COLUMNS = (
    "mean texture",
    "mean smoothness",
    "mean compactness",
    "mean concavity",
    "mean symmetry",
    "mean fractal dimension",
)
ALPHA, DELTA = 0.1, 0.05
# Without a penalty most of these fits have no finite optimum: the benign mean lies at
# the edge of the malignant tumours.
L2 = 0.1
REPEATS, QUICK_REPEATS = 100, 8
# Calibration rows, how often they are drawn for each fit, and who is lost among them.
CALIBRATION_ROWS, DRAWS = 400, 10
LOST_COLUMN, LOST_PROBABILITY = "mean concavity", 0.75


@dataclass(frozen=True, slots=True)
class Method:
    """One row of the table.

    Parameters
    ----------
    name, colour : str
    make : callable
        From the benign class's φ to an estimator, not fitted.
    lossy : bool
        Whether it sees the table that lost values, rather than the complete one.
    """

    name: str
    colour: str
    make: Callable[[Missingness], BaseRatio]
    lossy: bool = True


# The first is what the others are compared with.
METHODS = (
    Method("KLIEP, nothing lost", "#000000", lambda phi: KLIEP(l2=L2), lossy=False),
    Method("M-KLIEP", "#0072B2", lambda phi: KLIEP(l2=L2, missingness={1: phi})),
    Method("CC-KLIEP", "#D55E00", lambda phi: KLIEP(l2=L2, missingness="ignore")),
    Method(
        "naive Bayes M-KLIEP",
        "#56B4E9",
        lambda phi: NaiveBayesRatio(KLIEP(l2=L2), missingness={1: phi}),
    ),
    Method(
        "naive Bayes CC-KLIEP",
        "#E69F00",
        lambda phi: NaiveBayesRatio(KLIEP(l2=L2), missingness="ignore"),
    ),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A way in which benign tumours lose readings.

    Parameters
    ----------
    title, explanation : str
    draw : callable
        From the benign rows and signs, one for each column, to φ. A sign says whether
        high or low readings are the ones that are lost.
    """

    title: str
    explanation: str
    draw: Callable[[FloatArray, FloatArray], Missingness]


SCENARIOS = (
    Scenario(
        "Single readings are lost",
        "half of each column's, by a logistic φ of the reading itself",
        lambda benign, signs: LogisticMissingness.from_proportion(
            benign, coef=2.0 * signs, proportion=0.5
        ),
    ),
    Scenario(
        "Whole tumours are lost",
        "nine in ten of those on one side of the median of a signed sum",
        lambda benign, signs: StepMissingness(
            signs, threshold=float(np.median(benign @ signs)), probability=0.9
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method did in every repeat.

    Parameters
    ----------
    coef : ndarray of shape (n_repeats, n_columns)
    objective : ndarray of shape (n_repeats,)
        KLIEP's objective on held-out tumours, all complete; the larger the better.
    power : ndarray of shape (n_repeats,)
        The share of held-out benign tumours above the threshold that at most a
        share `ALPHA` of the held-out malignant ones exceed.
    concentrated : int
        How many fits warned that a few rows carry the weight.
    """

    coef: FloatArray
    objective: FloatArray
    power: FloatArray
    concentrated: int


def load() -> tuple[FloatArray, IntArray]:
    """The columns in units of their standard deviation; 1 is benign, 0 malignant."""
    table = load_breast_cancer()
    wanted = [table.feature_names.tolist().index(name) for name in COLUMNS]
    X: FloatArray = table.data[:, wanted]
    return (X - X.mean(axis=0)) / X.std(axis=0), table.target


def power(log_ratio: FloatArray, y: IntArray) -> float:
    """The share of class 1 above the score that at most `ALPHA` of class 0 exceed."""
    class_0 = np.sort(log_ratio[y == 0])[::-1]
    threshold = class_0[int(ALPHA * len(class_0))]
    return float(np.mean(log_ratio[y == 1] > threshold))


def objective(log_ratio: FloatArray, y: IntArray) -> float:
    """KLIEP's objective on complete rows: E log r(Z¹) − log E r(Z⁰)."""
    return float(log_ratio[y == 1].mean() - np.log(np.mean(np.exp(log_ratio[y == 0]))))


def fit(estimator: BaseRatio, X: FloatArray, y: IntArray) -> tuple[Any, bool]:
    """A fitted estimator, and whether it warned that a few rows carry the weight."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    concentrated = [issubclass(w.category, WeightConcentrationWarning) for w in caught]
    for warning, known in zip(caught, concentrated, strict=True):
        if not known:
            warnings.warn(warning.message, warning.category, stacklevel=2)
    return estimator, any(concentrated)


def run(
    scenario: Scenario, n_repeats: int, seed: int, tick: Callable[[], None]
) -> list[Outcome]:
    """Split, lose values, fit and score, again and again: an outcome for each method.

    All methods share the splits and what is lost.
    """
    X, y = load()
    records: list[list[tuple[FloatArray, float, float, bool]]] = [[] for _ in METHODS]
    for repeat in range(n_repeats):
        # 1. Half of the tumours are held out, complete.
        rng = np.random.default_rng([seed, repeat])
        train, test = train_test_split(
            np.arange(len(y)),
            test_size=0.5,
            stratify=y,
            random_state=int(rng.integers(2**31)),
        )
        # 2. Benign tumours of the other half lose readings.
        benign = train[y[train] == 1]
        signs = rng.choice([-1.0, 1.0], size=X.shape[1])
        phi = scenario.draw(X[benign], signs)
        lossy = X.copy()
        lossy[benign] = corrupt(X[benign], phi, rng)
        # 3. Every method learns from it and scores the held-out half.
        for method, record in zip(METHODS, records, strict=True):
            rows = lossy if method.lossy else X
            fitted, concentrated = fit(method.make(phi), rows[train], y[train])
            log_ratio = fitted.predict_log_ratio(X[test])
            record.append(
                (
                    fitted.coef_,
                    objective(log_ratio, y[test]),
                    power(log_ratio, y[test]),
                    concentrated,
                )
            )
        tick()
    return [
        Outcome(
            np.array([coef for coef, *_ in record]),
            np.array([held_out for _, held_out, _, _ in record]),
            np.array([share for _, _, share, _ in record]),
            sum(warned for *_, warned in record),
        )
        for record in records
    ]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Malignant tumours to calibrate with, before and after some are lost.

    Parameters
    ----------
    ratio : KLIEP
        Fitted, knowing φ.
    complete, lossy : ndarray of shape (n_rows, n_columns)
    training : ndarray of shape (n_training, n_columns)
        What is left of the malignant tumours that the ratio was fitted on.
    law : ndarray of shape (n_malignant,)
        Scores of the tumours that the rows were drawn from.
    """

    ratio: KLIEP
    complete: FloatArray
    lossy: FloatArray
    training: FloatArray
    law: FloatArray

    def plain(self, rows: FloatArray) -> float:
        """The threshold that is certified for tumours seen as these rows are."""
        classifier = NeymanPearsonClassifier(
            self.ratio, alpha=ALPHA, delta=DELTA, deployment="as-observed"
        )
        return classifier.calibrate(rows).threshold_

    def weighted(self, rule: str) -> float:
        """The threshold that is certified for complete tumours."""
        classifier = NeymanPearsonClassifier(
            self.ratio,
            alpha=ALPHA,
            delta=DELTA,
            rule=rule,
            on_infeasible="reject_all",
            random_state=0,
        )
        return classifier.calibrate(self.lossy, self.training).threshold_


@dataclass(frozen=True, slots=True)
class Calibration:
    """One way to choose a threshold: a row of the table on certificates."""

    name: str
    colour: str
    threshold: Callable[[Drawn], float]


CALIBRATIONS = (
    Calibration("law known", "#000000", lambda d: oracle_threshold(d.law, ALPHA)),
    Calibration("nothing lost", "#888888", lambda d: d.plain(d.complete)),
    Calibration(
        "complete cases",
        "#D55E00",
        lambda d: d.plain(d.lossy[~np.isnan(d.lossy).any(axis=1)]),
    ),
    Calibration("weights, paper's rule", "#56B4E9", lambda d: d.weighted("paper")),
    Calibration("weights, auto rule", "#0072B2", lambda d: d.weighted("auto")),
)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What one way to choose a threshold did.

    Parameters
    ----------
    error, power : ndarray of shape (n_repeats, DRAWS)
        The shares of malignant and of benign tumours that are cleared.
    """

    error: FloatArray
    power: FloatArray

    @property
    def violations(self) -> int:
        """How many thresholds clear more than `ALPHA` of the malignant tumours."""
        return int((self.error > ALPHA).sum())


def run_certificates(
    n_repeats: int, seed: int, tick: Callable[[], None]
) -> list[Calibrated]:
    """Fit, draw rows to calibrate with, lose some, and look at each threshold's error.

    The held-out malignant tumours are the law that rows are drawn from, with
    replacement, so that a threshold's error is known and not estimated.
    """
    X, y = load()
    column = COLUMNS.index(LOST_COLUMN)
    direction = -np.eye(len(COLUMNS))[column]
    results = np.empty((len(CALIBRATIONS), 2, n_repeats, DRAWS))
    for repeat in range(n_repeats):
        # 1. Half of the tumours, some malignant ones lost, to fit M-KLIEP on.
        rng = np.random.default_rng([seed, repeat])
        train, test = train_test_split(
            np.arange(len(y)),
            test_size=0.5,
            stratify=y,
            random_state=int(rng.integers(2**31)),
        )
        malignant = train[y[train] == 0]
        middle = float(np.median(X[malignant, column]))
        phi = StepMissingness(direction, -middle, LOST_PROBABILITY)
        lossy = X.copy()
        lossy[malignant] = corrupt(X[malignant], phi, rng)
        ratio, _ = fit(KLIEP(l2=L2, missingness={0: phi}), lossy[train], y[train])
        # 2. The other half is the law.
        pool = X[test[y[test] == 0]]
        law = ratio.predict_log_ratio(pool)
        benign = ratio.predict_log_ratio(X[test[y[test] == 1]])
        for draw in range(DRAWS):
            # 3. Tumours to calibrate with are drawn from it, and some are lost.
            complete = pool[rng.integers(len(pool), size=CALIBRATION_ROWS)]
            left = corrupt(complete, phi, rng)
            drawn = Drawn(ratio, complete, left, lossy[malignant], law)
            for calibration, result in zip(CALIBRATIONS, results, strict=True):
                threshold = calibration.threshold(drawn)
                result[0, repeat, draw] = np.mean(law > threshold)
                result[1, repeat, draw] = np.mean(benign > threshold)
        tick()
    return [Calibrated(error, power) for error, power in results]


def percent(share: float) -> str:
    """A share in whole per cent."""
    return f"{100 * share:.0f} %"


def half_width(values: FloatArray) -> float:
    """Half of a 95 % interval for the mean."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def table_lines(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """The outcomes as lines of text, the first method being the reference."""
    yield f"  {'':22}{'coefficients':>14}{'held-out':>16}{'benign cleared at':>21}"
    yield f"  {'':22}{'off by':>14}{'objective':>16}{'10 % of malignant':>21}"
    reference = outcomes[0].coef
    for method, outcome in zip(METHODS, outcomes, strict=True):
        distance = np.linalg.norm(outcome.coef - reference, axis=1)
        cells = [f"{distance.mean():.2f}" if method.lossy else "-"]
        for values, scale, digits in (
            (outcome.objective, 1, 2),
            (outcome.power, 100, 1),
        ):
            mean, half = scale * values.mean(), scale * half_width(values)
            cells.append(f"{mean:.{digits}f} ± {half:.{digits}f}")
        yield f"  {method.name:22}{cells[0]:>14}{cells[1]:>16}{cells[2] + ' %':>21}"


def certificate_lines(outcomes: Sequence[Calibrated]) -> Iterable[str]:
    """How often each way to choose a threshold broke its promise, and the power."""
    yield f"  {'':22}{'malignant':>12}{'thresholds that':>22}{'benign':>17}"
    yield f"  {'':22}{'cleared':>12}{'clear over 10 %':>22}{'cleared':>17}"
    for calibration, outcome in zip(CALIBRATIONS, outcomes, strict=True):
        # Draws for one fit have the fit in common: only repeats are independent.
        power = 100 * outcome.power.mean(axis=1)
        cells = (
            f"{100 * outcome.error.mean():.1f} %",
            f"{outcome.violations} of {outcome.error.size}",
            f"{power.mean():.1f} ± {half_width(power):.1f} %",
        )
        yield f"  {calibration.name:22}{cells[0]:>12}{cells[1]:>22}{cells[2]:>17}"


def figure(
    results: Sequence[Sequence[Outcome]], certified: Sequence[Calibrated]
) -> bytes:
    """The figure as a PNG: coefficients, power, and the errors of thresholds."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    fig = Figure(
        figsize=(11, 10.8),
        dpi=150,
        layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08),
    )
    fig.suptitle(
        "Weights mend what complete cases distort: coefficients, power and "
        "certificates",
        fontsize=14,
        fontweight="bold",
    )
    rows: Any = fig.subfigures(len(SCENARIOS) + 1, 1, hspace=0.04)
    for part, scenario, outcomes in zip(rows[:-1], SCENARIOS, results, strict=True):
        part.suptitle(f"{scenario.title}: {scenario.explanation}", fontsize=11)
        axes = part.subplots(1, 3, width_ratios=[1, 1, 1.25])
        for ax, which in zip(axes, (2, 1), strict=False):
            _draw_coefficients(ax, METHODS[which], outcomes[which], outcomes[0])
        powers = [(m.name, m.colour, o.power) for m, o in _pairs(METHODS, outcomes)]
        _draw_power(axes[2], powers)
        axes[2].set_xlabel("% cleared, where 10 % of malignant ones are too")
    rows[-1].suptitle(
        f"A certificate: at most {percent(ALPHA)} of malignant tumours cleared, with "
        f"probability {percent(1 - DELTA)}",
        fontsize=11,
    )
    left, right = rows[-1].subplots(1, 2, width_ratios=[2.1, 1.25])
    _draw_errors(left, certified)
    powers = [
        (c.name, c.colour, o.power.mean(axis=1))
        for c, o in _pairs(CALIBRATIONS, certified)
    ]
    _draw_power(right, powers)
    right.set_xlabel("% cleared at the threshold chosen")
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png")
    return buffer.getvalue()


def _draw_coefficients(
    ax: Any, method: Method, outcome: Outcome, reference: Outcome
) -> None:
    """A dot for each coefficient of each repeat; on the diagonal all is well."""
    ax.axline((0, 0), slope=1, color="0.5", linewidth=1, zorder=1)
    ax.scatter(
        reference.coef, outcome.coef, s=9, color=method.colour, alpha=0.35, linewidth=0
    )
    ax.set_xlim(-5.5, 4.5)
    ax.set_ylim(-9, 9)
    ax.set_title(f"Coefficients by {method.name}", fontsize=10, color=method.colour)
    ax.set_xlabel("with nothing lost")
    ax.set_ylabel("from what is left")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_errors(ax: Any, outcomes: Sequence[Calibrated]) -> None:
    """How the true errors of the thresholds are spread, one ridge for each way."""
    bins = np.arange(0.0, 32.0)
    shown = [
        pair for pair in _pairs(CALIBRATIONS, outcomes) if pair[0].name != "law known"
    ]
    for place, (calibration, outcome) in enumerate(shown):
        counts, _ = np.histogram(100 * outcome.error, bins)
        heights = place - 0.85 * counts / counts.max()
        ax.stairs(
            heights,
            bins,
            baseline=place,
            fill=True,
            color=calibration.colour,
            alpha=0.8,
        )
        ax.annotate(
            f"{100 * outcome.violations / outcome.error.size:.1f} % break it",
            (0.99, place - 0.4),
            xycoords=("axes fraction", "data"),
            ha="right",
            fontsize=9,
        )
    ax.axvline(100 * ALPHA, color="0.3", linestyle="--", linewidth=1)
    ax.set_yticks(range(len(shown)), [calibration.name for calibration, _ in shown])
    ax.set_ylim(len(shown) - 0.9, -1.05)
    ax.set_xlim(-1, 31)
    ax.set_title("True errors of the thresholds chosen", fontsize=10)
    ax.set_xlabel("% of malignant tumours cleared; dashed: what is promised")
    ax.spines[["top", "right"]].set_visible(False)


def _pairs(ways: Sequence[Any], outcomes: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(ways, outcomes, strict=True))


def _draw_power(ax: Any, powers: Sequence[tuple[str, str, FloatArray]]) -> None:
    """The share of benign tumours cleared: every repeat, and the mean."""
    jitter = np.random.default_rng(0)
    for place, (_, colour, power) in enumerate(powers):
        values = 100 * power
        heights = place + jitter.uniform(-0.22, 0.22, len(values))
        ax.scatter(
            values, heights, s=7, color=colour, alpha=0.25, linewidth=0, zorder=1
        )
        ax.errorbar(
            values.mean(),
            place,
            xerr=half_width(values),
            fmt="o",
            color=colour,
            markeredgecolor="white",
            markersize=8,
            capsize=4,
            elinewidth=2,
            zorder=2,
        )
        ax.annotate(
            f"{values.mean():.1f} %",
            (1.02, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    ax.set_yticks(range(len(powers)), [name for name, *_ in powers])
    ax.set_ylim(len(powers) - 0.5, -0.5)
    lowest = min(power.min() for *_, power in powers)
    ax.set_xlim(30 if lowest > 0 else -4, 101)
    ax.set_title("Benign tumours cleared", fontsize=10)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


class Progress:
    """A bar on standard error, redrawn on a terminal and in four lines elsewhere."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def __call__(self) -> None:
        """One more is done."""
        self.done += 1
        bar = "#" * (30 * self.done // self.total)
        line = f"[{bar:30}] {self.done} of {self.total}"
        if sys.stderr.isatty():
            end = "\n" if self.done == self.total else ""
            print(f"\r{line}", end=end, file=sys.stderr, flush=True)
        elif 4 * self.done // self.total > 4 * (self.done - 1) // self.total:
            print(line, file=sys.stderr, flush=True)


def save(picture: bytes, folder: Path) -> Path:
    """Write the figure, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "breast-cancer.png"
    draft = path.with_suffix(".png.part")
    draft.write_bytes(picture)
    draft.replace(path)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m missratio.demo",
        description="Density ratios and certified classifiers from a table that lost "
        "values: what complete cases get wrong and weights get right.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-output"),
        metavar="DIR",
        help="where to put the figure (default: demo-output)",
    )
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_REPEATS} repeats, not {REPEATS}"
    )
    options = parser.parse_args(arguments)
    if options.seed < 0:
        parser.error(f"--seed must not be negative: got {options.seed}.")
    n_repeats = QUICK_REPEATS if options.quick else REPEATS

    print(
        "Breast cancer: p(benign)/p(malignant) from six columns. Half of the 569 "
        "tumours\nare to learn from and half are held out. In the half to learn from, "
        "benign tumours\nlose readings by a known φ; which end of a column is lost is "
        f"drawn anew each time.\nMeans and 95 % intervals over {n_repeats} repeats.",
        flush=True,
    )
    tick = Progress((len(SCENARIOS) + 1) * n_repeats)
    results = [run(scenario, n_repeats, options.seed, tick) for scenario in SCENARIOS]
    for scenario, outcomes in zip(SCENARIOS, results, strict=True):
        print(f"\n{scenario.title}: {scenario.explanation}.", end="\n\n")
        print("\n".join(table_lines(outcomes)))
        warned = sum(outcome.concentrated for outcome in outcomes)
        if warned:
            print(
                f"\n  {warned} of {len(METHODS) * n_repeats} fits warned that a few "
                "rows carry half of the weight."
            )
    print(
        "\nOff by: distance from the coefficients with nothing lost. Objective: "
        "KLIEP's, the\nlarger the better. Cleared: benign tumours above the score that "
        "at most 10 % of\nthe held-out malignant ones exceed."
    )
    certified = run_certificates(n_repeats, options.seed, tick)
    print(
        f"\nA certificate: at most {percent(ALPHA)} of malignant tumours are to be "
        f"cleared, with probability {percent(1 - DELTA)}.\nNow malignant tumours are "
        "lost: three in four of those with less concavity than the\nmedian, which look "
        f"benign. The held-out half stands for the law: {CALIBRATION_ROWS} malignant "
        "tumours\nare drawn from it to choose a threshold with, some of them are lost, "
        f"and the threshold's\nerror is known. {DRAWS} draws for each of {n_repeats} "
        "fits of M-KLIEP.",
        end="\n\n",
    )
    print("\n".join(certificate_lines(certified)))
    print(
        f"\nOf the thresholds {percent(DELTA)} may clear more. Complete cases ignore "
        "φ. The paper's rule certifies\nnone with so few rows, and clears no tumour. "
        "The auto rule is the default of\nNeymanPearsonClassifier."
    )
    try:
        picture = figure(results, certified)
    except ImportError:
        print(
            'No figure: matplotlib is missing. Install it by pip install ".[report]".',
            file=sys.stderr,
        )
        return 1
    print(f"\nFigure: {save(picture, options.out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
