"""A sound model of each kind, and copies of them in which one part is another."""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
from forging import COLUMNS, PHI, several, table, trees, two
from forging import sample as rows_of
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.app.modelfile import (
    GroupedTableModel,
    MulticlassTableModel,
    TableModel,
    TrainingData,
)
from missratio.classifier import CandidatePower, PowerComparison


def grouped(threshold="own", **options):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 2)) + 3.0 * y[:, None]
    return mr.GroupedNeymanPearsonClassifier(
        LogisticRegression(), alpha=0.2, delta=0.2, threshold=threshold,
        random_state=0, **options,
    ).fit(X, y, ["a", "b"] * 300)  # fmt: skip


def grouped_table():
    training = TrainingData("t.csv", "0" * 64, {0: 300, 1: 300}, {0: {}, 1: {}})
    return GroupedTableModel(
        grouped(), COLUMNS, "y", ("who",), "logistic", training, "{}",
        group_column="who",
    )  # fmt: skip


def compared():
    """A table's model with all that it may have: a comparison and a covariance."""
    candidates = (CandidatePower("kliep", 0.5, 0.1), CandidatePower("trees"))
    comparison = PowerComparison("kliep", candidates, 0.3, 5, 60, 60, 1.0, 9.0)
    return replace(
        table(TableModel, two(mr.KLIEP())), comparison=comparison, covariance=np.eye(3)
    )


def capped():
    """Three ordered classes, of which one or two have a cap on their weights."""
    phi = mr.LogisticMissingness([-2.0, -2.0], [0.8, 0.0])
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 900)
    X = rng.normal(size=(2700, 2)) + np.array([(0, 0), (3, 0), (1, 3)])[y]
    for label in range(3):
        X[y == label] = mr.corrupt(X[y == label], phi, label)
    model = mr.MulticlassNeymanPearsonClassifier(
        mr.FDivergenceRatio("js"), alpha={0: 0.2, 1: 0.25}, order=[0, 1, 2],
        missingness=dict.fromkeys(range(3), phi), random_state=0,
    ).fit(X, y)  # fmt: skip
    assert 1 in model.caps_
    return model


def tuned():
    """A rule with a sample of its own, of training rows."""
    model = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.3, missingness={0: PHI}, rule="tuned-betting",
        random_state=0,
    )  # fmt: skip
    return model.fit(*rows_of(2, PHI))


MAKERS = {
    "two": lambda: two(mr.KLIEP(), PHI),
    "table": compared,
    "several": lambda: several(LogisticRegression()),
    "classes": lambda: table(MulticlassTableModel, several(LogisticRegression())),
    "ratios": lambda: several(mr.FDivergenceRatio("js")),
    "ordered": lambda: several(trees(), order=[0, 1, 2]),
    "capped": capped,
    "groups": grouped,
    "grouped table": grouped_table,
    "shared": lambda: grouped("shared", group_alpha={"a": 0.25}),
    "tuned": tuned,
}


@cache
def sound(kind):
    return MAKERS[kind]()


def with_part(whole, path, value):
    """A copy in which one part, by its path, is another; the rest is shared."""
    if not path:
        return value(whole) if callable(value) else value
    name, *rest = path
    if isinstance(whole, dict):
        return {**whole, name: with_part(whole.get(name), rest, value)}
    if isinstance(whole, tuple | list):
        parts = list(whole)
        parts[name] = with_part(parts[name], rest, value)
        return type(whole)(parts)
    new = copy.copy(whole)
    object.__setattr__(new, name, with_part(getattr(whole, name, None), rest, value))
    return new


def forged(kind, path, value):
    names = [int(name) if name.isdigit() else name for name in path.split(".")]
    return with_part(sound(kind), names, value)
