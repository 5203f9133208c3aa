"""Estimators, classifiers and tables that tests of certified classifiers share."""

import numpy as np
from data import looked_up, stacked
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import missratio as mr


class Total(ClassifierMixin, BaseEstimator):
    """Scores rows by a column, or by the sum of all; keeps what it was fitted with."""

    def __init__(self, column=None):
        self.column = column

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.sample_weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        X = np.asarray(X, dtype=float)
        return X.sum(axis=1) if self.column is None else X[:, self.column]

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


LINES = LogisticRegression()


def certified(estimator=LINES, **options):
    """A classifier of two classes, not fitted."""
    options = {"alpha": 0.1, "delta": 0.1, "random_state": 0} | options
    return mr.NeymanPearsonClassifier(estimator, **options)


def learned(
    n=3000, d=1, m=200, seed=0, rowwise=False, slope=1.0, intercept=-1.5, n1=400
):
    """Class 0, which loses values, complete class 1, φ⁰ as learned and as it is."""
    rng = np.random.default_rng(seed)
    Z0, X1 = rng.normal(size=(n, d)), rng.normal(1.5, 1.0, (n1, d))
    coef = np.full(d, slope) if rowwise else slope
    truth = mr.LogisticMissingness(intercept, coef, rowwise)
    X0 = mr.corrupt(Z0, truth, rng)
    revealed = looked_up(X0, Z0, m, rng, rowwise)
    phi = mr.learn_missingness(X0, revealed, rowwise=rowwise)
    return *stacked(X0, X1), phi, truth
