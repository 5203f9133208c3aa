"""How often promises to groups are broken, in random settings.

The score is a column, normal in each group and class, so that errors are known exactly.
Values of the controlled class go missing not at random; with --lost in ways that need a
cap on weights, or look-ups.

    python benchmarks/groups.py
    python benchmarks/groups.py --lost
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest, norm
from sklearn.base import BaseEstimator, ClassifierMixin

import missratio as mr
from missratio.exceptions import NoCertificateError

SEED, REPEATS = 5, 400
KINDS = ("caps", "look-ups")
# Points of each group's law that its error is measured on.
GRID = 5000


class FirstColumn(ClassifierMixin, BaseEstimator):
    """Scores rows by their first column."""

    def fit(self, X, y, sample_weight=None):
        """Nothing is learned but the labels."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        """The column, the larger the more like class 1."""
        return np.asarray(X)[:, 0]

    def predict(self, X):
        """The sign."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


@dataclass(frozen=True)
class Setting:
    """What is drawn at random."""

    shifts: np.ndarray
    shares: np.ndarray
    rows: int
    alpha: float
    delta: float
    slope: float

    @classmethod
    def draw(cls, number: int) -> Setting:
        """Setting number so-and-so."""
        rng = np.random.default_rng([SEED, number])
        n_groups = int(rng.integers(2, 5))
        return cls(
            rng.normal(0, 0.7, n_groups),
            rng.dirichlet(np.full(n_groups, 4.0)),
            int(rng.integers(1500, 4000)),
            float(rng.uniform(0.08, 0.25)),
            float(rng.choice([0.05, 0.1, 0.2])),
            float(rng.choice([0.0, -1.0, 1.0])),
        )

    def model(self):
        """φ of the controlled class."""
        if not self.slope:
            return None
        return mr.FunctionMissingness(
            lambda x: 0.6 / (1.0 + np.exp(-2.0 * self.slope * x[:, 0])), maximum=0.6
        )

    def fit(self, rng, seed: int, change=lambda classifier: classifier):
        """Draw rows, fit; the thresholds of groups."""
        groups = rng.choice(len(self.shifts), self.rows, p=self.shares)
        y = (rng.random(self.rows) < 0.45).astype(int)
        X = rng.normal(self.shifts[groups] + 1.8 * y)[:, None]
        model = self.model()
        if model is not None:
            lost = np.flatnonzero(y == 0)
            X[lost] = mr.corrupt(X[lost], model, random_state=rng)
        classifier = mr.GroupedNeymanPearsonClassifier(
            FirstColumn(),
            self.alpha,
            self.delta,
            missingness=None if model is None else {0: model},
            on_infeasible="reject_all",
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return change(classifier).fit(X, y, groups)

    def broken(self, fitted) -> bool:
        """Whether a promise is."""
        places = np.arange(len(self.shifts))
        limits = np.array([fitted.thresholds_.get(g, np.inf) for g in places])
        return bool((norm.sf(limits - self.shifts) > self.alpha).any())


@dataclass(frozen=True)
class LostSetting:
    """Groups whose rows weigh without a bound, or are looked up in part."""

    kind: str
    shifts: np.ndarray
    shares: np.ndarray
    rows: int
    alpha: float
    delta: float
    slope: float
    intercept: float
    looked_up: float

    @classmethod
    def draw(cls, number: int) -> LostSetting:
        """Setting number so-and-so."""
        rng = np.random.default_rng([SEED, 2, number])
        n_groups = int(rng.integers(2, 5))
        return cls(
            KINDS[number % len(KINDS)],
            rng.normal(0, 0.7, n_groups),
            rng.dirichlet(np.full(n_groups, 4.0)),
            int(rng.integers(1500, 4000)),
            float(rng.uniform(0.1, 0.25)),
            float(rng.choice([0.1, 0.2])),
            float(rng.choice([-1.5, 0.7, 1.5, 2.5])),
            float(rng.uniform(-2.5, -0.5)),
            float(rng.uniform(0.3, 0.8)),
        )

    @property
    def shared(self) -> bool:
        """Each group has a threshold of its own."""
        return False

    def fit(self, rng, seed: int, change=lambda classifier: classifier):
        """Draw rows, lose some, look up some of these, fit."""
        groups = rng.choice(len(self.shifts), self.rows, p=self.shares)
        y = (rng.random(self.rows) < 0.45).astype(int)
        X = rng.normal(self.shifts[groups] + 1.8 * y)[:, None]
        phi = mr.FunctionMissingness(
            lambda x: expit(self.intercept + self.slope * x[:, 0])
        )
        lost = (y == 0) & (rng.random(self.rows) < phi.missing_probability(X))
        more, models = {}, {0: phi}
        if self.kind == "look-ups":
            drawn = rng.permutation(np.flatnonzero(lost))
            drawn = drawn[: max(1, round(self.looked_up * len(drawn)))]
            inclusion = np.where(lost, 0.0, 1.0)
            inclusion[drawn] = len(drawn) / lost.sum()
            lost[drawn] = False
            more, models = {"inclusion": inclusion}, None
        X[lost] = np.nan
        classifier = mr.GroupedNeymanPearsonClassifier(
            FirstColumn(),
            self.alpha,
            self.delta,
            missingness=models,
            on_infeasible="reject_all",
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return change(classifier).fit(X, y, groups, **more)

    def broken(self, fitted) -> bool:
        """Whether a group's error is above α, on a grid of its law."""
        law = norm.ppf((np.arange(GRID) + 0.5) / GRID)
        for place, shift in enumerate(self.shifts):
            rows = np.full(GRID, place, dtype=object)
            error = np.mean(fitted.predict((shift + law)[:, None], rows) == 1)
            if error > self.alpha + 1.0 / GRID:
                return True
        return False


@dataclass(frozen=True)
class Outcome:
    """Of so many repeats, those with a certificate and those with a broken promise."""

    setting: Setting | LostSetting
    repeats: int
    certified: int
    broken: int
    capped: int = 0

    @property
    def p_value(self) -> float:
        """Of the claim that promises break with probability δ at most."""
        test = binomtest(self.broken, self.repeats, self.setting.delta, "greater")
        return float(test.pvalue)


def simulate(
    setting: Setting | LostSetting, repeats: int = REPEATS, change=lambda c: c
) -> Outcome:
    """Fit again and again."""
    certified = broken = capped = 0
    for repeat in range(repeats):
        try:
            rng = np.random.default_rng([SEED, 1, repeat])
            fitted = setting.fit(rng, repeat, change)
        except NoCertificateError:
            continue
        certified += any(each.certified for each in fitted.certificate_.certificates)
        capped += fitted.calibrations_[0].trust.cap is not None
        broken += setting.broken(fitted)
    return Outcome(setting, repeats, certified, broken, capped)


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--settings", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--lost", action="store_true", help="caps and look-ups")
    asked = parser.parse_args()
    if asked.lost:
        _print_lost(asked)
        return
    print("setting  groups  missing  delta  certified  broken  p")
    for number in range(asked.first, asked.first + asked.settings):
        found = simulate(Setting.draw(number), asked.repeats)
        setting = found.setting
        print(
            f"{number:7d}  {len(setting.shifts):6d}  "
            f"{'yes' if setting.slope else 'no':7s}  {setting.delta:5.2f}  "
            f"{found.certified:9d}  {found.broken / found.repeats:6.3f}  "
            f"{found.p_value:.2g}"
        )


def _print_lost(asked) -> None:
    print("setting  kind      groups  slope  delta  certified  capped  broken  p")
    for number in range(asked.first, asked.first + asked.settings):
        found = simulate(LostSetting.draw(number), asked.repeats)
        setting = found.setting
        print(
            f"{number:7d}  {setting.kind:8s}  {len(setting.shifts):6d}  "
            f"{setting.slope:5.1f}  {setting.delta:5.2f}  {found.certified:9d}  "
            f"{found.capped:6d}  {found.broken / found.repeats:6.3f}  "
            f"{found.p_value:.2g}"
        )


if __name__ == "__main__":
    main()
