"""The main job on an embedded data set: ``python -m demonstration``.

scikit-learn's breast-cancer table loses values of its benign tumours by a known φ, and
ratios p(benign)/p(malignant) are learned from what is left. Since φ is known and the
complete table is at hand, each fit can be compared with the one that lost nothing.

Then malignant tumours are lost, and thresholds are chosen that clear at most a share α
of them. Since they are drawn from a known law, each threshold's true error is known.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from demonstration._experiments import (
    ALPHA,
    CALIBRATION_ROWS,
    CALIBRATIONS,
    DELTA,
    DRAWS,
    LOOKED_UP,
    METHODS,
    QUICK_REPEATS,
    REPEATS,
    SCENARIOS,
    power,
    run,
    run_certificates,
)
from demonstration._figure import figure
from demonstration._tables import certificate_lines, percent, table_lines

__all__ = [
    "CALIBRATIONS",
    "DELTA",
    "METHODS",
    "QUICK_REPEATS",
    "SCENARIOS",
    "main",
    "power",
]


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
        prog="python -m demonstration",
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
        if doubted := outcomes[0].doubted:
            print(
                f"  learn_missingness warned of the φ that it learned in {doubted} of "
                f"{n_repeats} repeats."
            )
    print(
        "\nOff by: distance from the coefficients with nothing lost. Objective: "
        "KLIEP's, the\nlarger the better. Cleared: benign tumours above the score that "
        "at most 10 % of\nthe held-out malignant ones exceed. Looked up: "
        f"{LOOKED_UP} missing readings of each column, or\n{LOOKED_UP} whole tumours, "
        "drawn at random. They teach a logistic φ (learned), or they are data\nwith a "
        "known probability of being there, which needs no φ. For whole tumours the\n"
        "logistic form is wrong, and it shows."
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
