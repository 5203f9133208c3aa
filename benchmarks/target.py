"""How often a certificate for another population is broken, r known and learned.

Columns are normal in the source and shifted in the target; a class is as likely given
the columns in both. Settings are drawn at random from a seed: the shift, the number of
rows, α, δ, and how rows of the controlled class go missing.

    python benchmarks/target.py
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.exceptions import NoCertificateError

SEED, REPEATS, TEST_ROWS = 3, 300, 60_000
WAYS = ("known", "learned", "left out")


class KnownRatio:
    """The density ratio of two normal laws with unit variance."""

    def __init__(self, shift):
        self.shift = shift

    def predict_log_ratio(self, X):
        """Up to a constant."""
        return np.asarray(X) @ self.shift


@dataclass(frozen=True)
class Setting:
    """What is drawn at random."""

    shift: np.ndarray
    rows: int
    target_rows: int
    alpha: float
    delta: float
    most: float

    @classmethod
    def draw(cls, number: int) -> Setting:
        """Setting number so-and-so."""
        rng = np.random.default_rng([SEED, number])
        direction = rng.normal(size=2)
        return cls(
            rng.uniform(0.3, 0.9) * direction / np.linalg.norm(direction),
            int(rng.integers(1500, 4000)),
            int(rng.integers(1000, 4000)),
            float(rng.uniform(0.08, 0.2)),
            float(rng.choice([0.05, 0.1, 0.2])),
            float(rng.choice([0.0, 0.5, 0.7])),
        )

    def labelled(self, rng, rows: int, shift):
        """Rows of a population, and their labels."""
        X = rng.normal(size=(rows, 2)) + shift
        y = (rng.random(rows) < expit(2.0 * X[:, 0] + X[:, 1] - 0.5)).astype(int)
        return X, y

    def fit(self, way: str, repeat: int):
        """Fit in one of the ways; the fitted classifier."""
        rng = np.random.default_rng([SEED, 1, repeat])
        X, y = self.labelled(rng, self.rows, 0.0)
        target = rng.normal(size=(self.target_rows, 2)) + self.shift
        models = None
        if self.most:
            phi = mr.FunctionMissingness(
                lambda x: self.most * expit(1.5 * x[:, 0]), maximum=self.most
            )
            models = {0: phi}
            X[y == 0] = mr.corrupt(X[y == 0], phi, random_state=rng)
        classifier = mr.NeymanPearsonClassifier(
            LogisticRegression(),
            self.alpha,
            self.delta,
            missingness=models,
            random_state=repeat,
        )
        given = {"known": KnownRatio(self.shift), "learned": target, "left out": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return classifier.fit(X, y, target=given[way])


@dataclass(frozen=True)
class Outcome:
    """Of so many repeats, those with a certificate and those with a broken one."""

    setting: Setting
    repeats: int
    certified: int
    broken: int
    power: float
    factor: float

    @property
    def p_value(self) -> float:
        """Of the claim that certificates break with probability δ at most."""
        test = binomtest(self.broken, self.repeats, self.setting.delta, "greater")
        return float(test.pvalue)


def simulate(setting: Setting, way: str, repeats: int = REPEATS) -> Outcome:
    """Fit again and again; errors are those on fresh rows of the target."""
    rng = np.random.default_rng([SEED, 2])
    X, y = setting.labelled(rng, TEST_ROWS, setting.shift)
    certified = broken = 0
    powers, factors = [], []
    for repeat in range(repeats):
        try:
            fitted = setting.fit(way, repeat)
        except NoCertificateError:
            continue
        certified += 1
        above = fitted.predict(X) == 1
        broken += bool(above[y == 0].mean() > setting.alpha)
        powers.append(above[y == 1].mean())
        factors.append(fitted.certificate_.target_factor or np.nan)
    return Outcome(
        setting,
        repeats,
        certified,
        broken,
        float(np.mean(powers)) if powers else np.nan,
        float(np.median(factors)) if factors else np.nan,
    )


def main() -> None:
    """Print a line for each setting and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    asked = parser.parse_args()
    print(
        "setting  ratio     missing  delta  certified  broken  p        power  factor"
    )
    for number in range(asked.settings):
        setting = Setting.draw(number)
        for way in WAYS:
            found = simulate(setting, way, asked.repeats)
            print(
                f"{number:7d}  {way:8s}  {setting.most:7.1f}  {setting.delta:5.2f}  "
                f"{found.certified:9d}  {found.broken / found.repeats:6.3f}  "
                f"{found.p_value:7.2g}  {found.power:5.3f}  {found.factor:.2f}"
            )


if __name__ == "__main__":
    main()
