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
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        print(
            'The figure needs matplotlib. Install it by pip install ".[report]".',
            file=sys.stderr,
        )
        return 1
    n_repeats = QUICK_REPEATS if options.quick else REPEATS

    tick = Progress((len(SCENARIOS) + 1) * n_repeats)
    print(
        "Breast cancer: six columns of 569 tumours. Half of them are to learn from and "
        "half are\nheld out. A tumour that is called benign is cleared.\n\n"
        f"A promise: at most {percent(ALPHA)} of malignant tumours are cleared, with "
        f"probability {percent(1 - DELTA)}. But\nthree in four of the malignant "
        "tumours that look benign (less concavity than the median)\nare lost. The "
        f"held-out half stands for all tumours: {CALIBRATION_ROWS} malignant ones are "
        "drawn from it to\nchoose a threshold with, some of them are lost, and the "
        f"threshold's true error is known.\n{DRAWS} draws for each of {n_repeats} "
        "fits.",
        flush=True,
    )
    certified = run_certificates(n_repeats, options.seed, tick)
    broken = {
        way.name: outcome.violations
        for way, outcome in zip(CALIBRATIONS, certified, strict=True)
    }
    total = certified[0].error.size
    print(
        f"\nThe promise is broken by {broken['complete cases']} of {total} thresholds "
        "that were chosen from complete cases (rows\nthat lost nothing), and by "
        f"{broken['weights, auto rule']} of missratio's, where {DELTA * total:.0f} may "
        "be.\n"
    )
    print("\n".join(certificate_lines(certified)))
    print(
        "\nmissratio weights each malignant tumour by 1/(1 − φ), where φ is the "
        "probability that one\nlike it is lost. It certifies by the auto rule, its "
        "default; the paper's rule certifies\nnothing with so few rows."
    )
    print(
        "\nThe density ratio behind it, p(benign)/p(malignant): how much likelier a "
        "tumour is benign.\nNow benign tumours to learn from lose readings by a known "
        "φ; which end of a column is lost\nis drawn anew each time. M-KLIEP has "
        "weights, and CC-KLIEP complete cases. Means and 95 %\nintervals over "
        f"{n_repeats} repeats.",
        flush=True,
    )
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
    print(f"\nFigure: {save(figure(results, certified), options.out)}")
    return 0
