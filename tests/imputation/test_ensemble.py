"""Any learner on imputed tables, alone and under a certificate."""

import numpy as np
import pytest
from classifiers import certified
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr

PHI = mr.LogisticMissingness(0.0, [2.0, -2.0])


def draw(n, seed, labels=(0, 1), lose=True):
    """Classes that differ in how the columns go together; the last one loses values."""
    rng = np.random.default_rng(seed)
    Z0 = rng.multivariate_normal([0, 0], [[1, -0.8], [-0.8, 1]], n)
    Z1 = rng.multivariate_normal([1, 1], [[1, 0.8], [0.8, 1]], n)
    X1 = mr.corrupt(Z1, PHI, rng) if lose else Z1
    return np.concatenate([Z0, X1]), np.repeat(labels, n)


def ensemble(estimator, n_imputations=3, **options):
    imputer = mr.TiltedImputer(n_imputations=n_imputations, random_state=0, **options)
    return mr.ImputationEnsemble(imputer, estimator)


@pytest.mark.parametrize(
    "learner", [LogisticRegression(), RandomForestClassifier(10, random_state=0)]
)
def test_scores_are_means_over_the_imputations(learner):
    X, y = draw(300, 0)
    model = ensemble(learner, unlabelled=1).set_params(imputer__missingness={1: PHI})
    model.fit(X, y)
    rows, truth = draw(200, 1, lose=False)
    tables = model.imputer.fit_impute(X, y)
    members = [clone(learner).fit(table, y) for table in tables]
    methods = ["predict_proba"]
    if hasattr(learner, "decision_function"):
        methods.append("decision_function")
    assert hasattr(model, "decision_function") == (len(methods) == 2)
    # Each member scores an imputation of its own.
    lossy = np.array([[np.nan, 0.0], [1.0, np.nan]])
    imputed = model.imputer_.impute(lossy)
    for method in methods:
        for given, own in ((rows, [rows] * 3), (lossy, imputed)):
            scores = [
                getattr(member, method)(table)
                for member, table in zip(members, own, strict=True)
            ]
            expected = np.mean(scores, axis=0)
            np.testing.assert_allclose(getattr(model, method)(given), expected)
    assert (model.predict(rows) == truth).mean() > 0.75


TREES = HistGradientBoostingClassifier(max_iter=20, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(mr.TiltedImputer(random_state=0), TREES),
        ensemble(TREES),
        make_pipeline(ensemble(make_pipeline(StandardScaler(), TREES))),
    ],
    ids=["pipeline", "ensemble", "ensemble in a pipeline"],
)
@pytest.mark.parametrize("labels", [(0, 1), (1, 0), ("a", "b")])
def test_any_learner_under_a_certificate(estimator, labels):
    X, y = draw(600, 0, labels)
    model = certified(
        estimator, controlled_class=labels[0], missingness={labels[1]: PHI}, delta=0.05
    ).fit(X, y)
    assert model.certificate_.certified
    rows, truth = draw(5000, 1, labels, lose=False)
    predicted = model.predict(rows)
    error = (predicted[truth == labels[0]] == labels[1]).mean()
    power = (predicted[truth == labels[1]] == labels[1]).mean()
    # The bound, estimated to 0.004, and what complete data give.
    assert error < 0.11
    assert power > 0.6
    assert model.predict([[np.nan, 0.0]]).tolist() == [labels[0]]
