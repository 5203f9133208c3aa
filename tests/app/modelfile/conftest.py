"""A fitted classifier of each kind that can be saved."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr
from missratio._files import Cells
from missratio.app.modelfile import TrainingData
from missratio.app.tables import Encoder, TableColumn

PHI = mr.LogisticMissingness([-2.0, -2.0, -np.inf], [1.0, 1.0, 0.0])
WHOLE = mr.StepMissingness([1.0, 0.0, 0.0], 0.0, 0.5)


def sample():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1600, 3)), np.repeat(["a", "b"], 800)
    X[y == "b"] += 1.0
    return X, y


def fit(estimator, phi=None):
    X, y = sample()
    if phi is not None:
        X[y == "a"] = mr.corrupt(X[y == "a"], phi, 0)
    return mr.NeymanPearsonClassifier(
        estimator,
        alpha=0.2,
        delta=0.1,
        missingness=None if phi is None else {"a": phi},
        controlled_class="a",
        random_state=0,
    ).fit(X, y)


def learned():
    X, y = sample()
    rng = np.random.default_rng(1)
    lossy = mr.corrupt(X[y == "a"], PHI, 0)
    known = np.isnan(lossy) & (rng.uniform(size=lossy.shape) < 0.5)
    phi = mr.learn_missingness(lossy, np.where(known, X[y == "a"], np.nan))
    X[y == "a"] = lossy
    return mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.3, missingness={"a": phi}, controlled_class="a",
        random_state=0,
    ).fit(X, y)  # fmt: skip


KINDS = {
    "complete": lambda: fit(mr.KLIEP()),
    "joint": lambda: fit(mr.KLIEP(), PHI),
    "penalties": lambda: fit(mr.KLIEP(l2=np.array([0.0, 0.1, 0.0])), WHOLE),
    "cross-validated": lambda: fit(mr.KLIEPCV(random_state=0), PHI),
    "naive-bayes": lambda: fit(mr.NaiveBayesRatio(mr.KLIEP()), PHI),
    "divergence": lambda: fit(mr.FDivergenceRatio("js")),
    "gaussian": lambda: fit(mr.KLIEP(mr.GaussianBasis(5), l2=0.1)),
    "polynomial": lambda: fit(mr.KLIEP(mr.PolynomialBasis(2))),
    "kernel": lambda: fit(mr.KernelRatio(centers=20, random_state=0), PHI),
    "subspace": lambda: fit(
        mr.SubspaceRatio(
            mr.KernelRatio(centers=20, sigma_grid=2, flat_within=0.0), random_state=0
        )
    ),
    "classifier": lambda: fit(mr.ClassifierRatio(LogisticRegression()), PHI),
    "learned": learned,
    "logistic": lambda: fit(make_pipeline(StandardScaler(), LogisticRegression())),
    "trees": lambda: fit(HistGradientBoostingClassifier(max_iter=10, random_state=0)),
    "scaled trees": lambda: fit(
        make_pipeline(
            StandardScaler(), HistGradientBoostingClassifier(max_iter=5, random_state=0)
        )
    ),
    "imputed-trees": lambda: fit(
        mr.ImputationEnsemble(
            mr.TiltedImputer(n_imputations=2, random_state=0),
            HistGradientBoostingClassifier(max_iter=10, random_state=0),
        ),
        PHI,
    ),
}


@pytest.fixture(params=KINDS)
def classifier(request):
    return KINDS[request.param]()


@pytest.fixture
def rows():
    return np.random.default_rng(2).normal(0.5, 1, (500, 3))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.skops"
    mr.save_model(fit(mr.KLIEP(), PHI), path)
    return path


@pytest.fixture(params=["trees", "scaled trees", "imputed-trees"])
def saved_trees(tmp_path, request):
    path = tmp_path / "trees.skops"
    mr.save_model(KINDS[request.param](), path)
    return path


@pytest.fixture
def saved_table(tmp_path):
    """A model with the columns of a table, as `missratio fit` writes it."""
    classifier = KINDS["complete"]()
    encoder = Encoder(tuple(TableColumn(name) for name in "pqr"), Cells())
    training = TrainingData("t.csv", "0" * 64, {"a": 800, "b": 800}, {"a": {}, "b": {}})
    model = mr.app.modelfile.TableModel(
        classifier, encoder, "y", (), "kliep", training, "{}"
    )
    path = tmp_path / "table.skops"
    mr.save_model(model, path)
    return path
