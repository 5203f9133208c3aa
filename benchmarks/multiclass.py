"""How often several bounds on classes' errors fail together, in random settings.

A setting is drawn from a seed: the number of classes and of columns, their centres, the
rows of each class, which classes are bounded and at which levels, δ, whether classes
are ordered, and how values go missing. Errors are measured on fresh complete rows (as
observed where the certificate is for such).

    python benchmarks/multiclass.py --settings 12 --repeats 400
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin

import missratio as mr

KINDS = (
    "complete", "rows", "entries", "look-ups", "as observed", "bounded entries",
)  # fmt: skip
SEED, REPEATS, TEST_ROWS = 11, 400, 20_000
KNOWN = ("rows", "entries", "bounded entries")
# The declared bound on the probability that an entry is missing.
MAXIMUM = 0.6


class Centroids(ClassifierMixin, BaseEstimator):
    """Normal classes with a common variance, fitted to what is observed."""

    def fit(self, X, y, sample_weight=None):
        """Weighted means of each class and column, NaN left out."""
        self.classes_ = np.unique(y)
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        means = []
        for label in self.classes_:
            rows, own = X[y == label], weights[y == label][:, None]
            seen = ~np.isnan(rows)
            means.append(np.nansum(own * rows, 0) / np.maximum((own * seen).sum(0), 1))
        self.means_ = np.array(means)
        return self

    def decision_function(self, X):
        """Squared distances, over observed columns, up to a term of the row's."""
        if not np.isnan(X).any():
            return X @ self.means_.T - 0.5 * (self.means_**2).sum(axis=1)
        return -0.5 * np.nansum((X[:, None, :] - self.means_) ** 2, axis=2)

    def predict(self, X):
        """The nearest class."""
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]

    def __sklearn_tags__(self):
        """NaN is left out."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True)
class Setting:
    """What is drawn at random."""

    kind: str
    centres: np.ndarray
    n_rows: tuple[int, ...]
    alpha: dict[int, float]
    delta: float
    is_ordered: bool
    slope: float

    @classmethod
    def draw(cls, number: int, seed: int = SEED) -> Setting:
        """Setting number so-and-so of a seed."""
        rng = np.random.default_rng([seed, number])
        kind = KINDS[number % len(KINDS)]
        n_classes = int(rng.integers(3, 5))
        is_ordered = bool(rng.random() < 0.4)
        m = n_classes - 1 if is_ordered else int(rng.integers(1, n_classes))
        bounded = range(m) if is_ordered else rng.permutation(n_classes)[:m]
        return cls(
            kind,
            rng.normal(0, 1.4, (n_classes, int(rng.integers(2, 4)))),
            tuple(rng.integers(500, 1200, n_classes).tolist()),
            {int(k): round(float(rng.uniform(0.08, 0.3)), 3) for k in bounded},
            float(rng.choice([0.05, 0.1, 0.2])),
            is_ordered,
            float(rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5)),
        )

    def rows(self, rng: np.random.Generator, n_rows: tuple[int, ...]):
        """Complete rows of every class."""
        X = [
            rng.normal(c, 1.0, (n, len(c)))
            for c, n in zip(self.centres, n_rows, strict=True)
        ]
        return np.concatenate(X), np.repeat(np.arange(len(n_rows)), n_rows)

    @property
    def models(self):
        """Why each class's values are missing, not at random."""
        width = self.centres.shape[1]
        if self.kind == "rows":
            return {
                k: mr.FunctionMissingness(
                    lambda x, c=c: 0.6 / (1 + np.exp(-self.slope * (x - c)[:, 0])),
                    maximum=0.6,
                )
                for k, c in enumerate(self.centres)
            }
        if self.kind == "bounded entries":
            return {
                k: mr.FunctionMissingness(
                    lambda x, c=c: self._first_column(x, c[0]),
                    rowwise=False,
                    maximum=[MAXIMUM] + [0.0] * (width - 1),
                )
                for k, c in enumerate(self.centres)
            }
        coef = np.zeros(width)
        coef[0] = self.slope
        intercept = np.full(width, -60.0)
        return {
            k: mr.LogisticMissingness([-1.0 - self.slope * c[0], *intercept[1:]], coef)
            for k, c in enumerate(self.centres)
        }

    def _first_column(self, X, centre):
        """Logistic in the first column, and level from a point on."""
        chance = np.zeros(X.shape)
        odds = np.exp(-1.0 + self.slope * (X[:, 0] - centre))
        chance[:, 0] = np.minimum(odds / (1.0 + odds), MAXIMUM)
        return chance

    def corrupted(self, X, y, rng: np.random.Generator):
        """Rows that have lost values."""
        X = X.copy()
        if self.kind == "complete":
            return X
        for k, model in self.models.items():
            X[y == k] = mr.corrupt(X[y == k], model, random_state=rng)
        return X

    def classifier(self, random_state: int):
        """The classifier that is put to the test."""
        return mr.MulticlassNeymanPearsonClassifier(
            Centroids(),
            alpha=self.alpha,
            delta=self.delta,
            order=list(range(len(self.centres))) if self.is_ordered else None,
            missingness=self.models if self.kind in KNOWN else None,
            deployment="as-observed" if self.kind == "as observed" else "complete",
            random_state=random_state,
        )

    def fit(self, classifier, rng: np.random.Generator):
        """Draw rows, let them lose values, and fit."""
        complete, y = self.rows(rng, self.n_rows)
        X, inclusion = self.corrupted(complete, y, rng), None
        if self.kind == "look-ups":
            inclusion = np.ones(len(y))
            for k in range(len(self.centres)):
                lost = np.flatnonzero((y == k) & np.isnan(X).any(axis=1))
                found = rng.permutation(lost)[: max(len(lost) // 2, 1)]
                inclusion[lost] = 0.0
                inclusion[found] = len(found) / max(len(lost), 1)
                X[found] = complete[found]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return classifier.fit(X, y, inclusion=inclusion)

    def errors(self, predicted, y) -> dict[int, float]:
        """The errors that are bounded."""
        wrong = predicted > y if self.is_ordered else predicted != y
        return {k: float(np.mean(wrong[y == k])) for k in self.alpha}


@dataclass(frozen=True)
class Outcome:
    """Of so many repeats, those with a certificate and those with a broken bound."""

    setting: Setting
    repeats: int
    certified: int
    broken: int
    rest: float

    @property
    def p_value(self) -> float:
        """Of the claim that bounds break with probability δ at most."""
        test = binomtest(self.broken, self.repeats, self.setting.delta, "greater")
        return float(test.pvalue)


def simulate(
    setting: Setting,
    repeats: int = REPEATS,
    change: Callable = lambda classifier: classifier,
) -> Outcome:
    """Fit again and again.

    Parameters
    ----------
    setting : Setting
    repeats : int
    change : callable
        Makes of the classifier the one that is fitted, such as a broken one.
    """
    rng = np.random.default_rng([SEED, 2])
    X, y = setting.rows(rng, (TEST_ROWS,) * len(setting.centres))
    if setting.kind == "as observed":
        X = setting.corrupted(X, y, rng)
    certified = broken = 0
    rest: list[float] = []
    for repeat in range(repeats):
        try:
            classifier = change(setting.classifier(repeat))
            fitted = setting.fit(classifier, np.random.default_rng([SEED, 3, repeat]))
        except mr.exceptions.NoCertificateError:
            continue
        certified += 1
        predicted = fitted.predict(X)
        found = setting.errors(predicted, y)
        broken += any(found[k] > level for k, level in setting.alpha.items())
        rest += [
            float(np.mean(predicted[y == k] != k))
            for k in range(len(setting.centres))
            if k not in setting.alpha
        ]
    return Outcome(
        setting, repeats, certified, broken, float(np.mean(rest)) if rest else np.nan
    )


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=12)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    asked = parser.parse_args()
    print(
        "setting  missing          classes  bounded  delta  certified  broken  p   rest"
    )
    for number in range(asked.first, asked.first + asked.settings):
        found = simulate(Setting.draw(number), asked.repeats)
        setting = found.setting
        kind = f"{'ordered' if setting.is_ordered else 'unordered'}"
        print(
            f"{number:7d}  {setting.kind:15s} {len(setting.centres)} {kind:9s} "
            f"{len(setting.alpha):3d}    {setting.delta:4.2f}  {found.certified:9d}  "
            f"{found.broken / found.repeats:6.3f}  {found.p_value:.2g}  "
            f"{found.rest:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
