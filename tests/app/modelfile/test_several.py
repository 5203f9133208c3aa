"""Classifiers of several classes in files: the same labels, and nothing made up."""

import io
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tampering import attribute, change_schema, members_of, refused, write

import missratio as mr
from missratio.app.modelfile.archive import HEADER

CENTRES = {"a": (0, 0), "b": (3, 0), "c": (1, 3)}
PHI = mr.LogisticMissingness([-2.0, -2.0], [0.5, 0.5])

LEVEL = mr.LogisticMissingness([-2.0, -2.0], [0.0, 0.0])


def sample(phi=None):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1, (700, 2)) for c in CENTRES.values()])
    y = np.repeat(list(CENTRES), 700)
    if phi is not None:
        for label in CENTRES:
            X[y == label] = mr.corrupt(X[y == label], phi, 0)
    return X, y


def fit(estimator=None, phi=None, order=None):
    return mr.MulticlassNeymanPearsonClassifier(
        estimator or LogisticRegression(),
        alpha={"a": 0.3, "b": 0.35},
        order=order,
        missingness=None if phi is None else dict.fromkeys(CENTRES, phi),
        random_state=0,
    ).fit(*sample(phi))


KINDS = {
    "logistic": fit,
    "scaled": lambda: fit(make_pipeline(StandardScaler(), LogisticRegression())),
    "ordered": lambda: fit(order=["a", "b", "c"]),
    "trees": lambda: fit(HistGradientBoostingClassifier(max_iter=5, random_state=0)),
    "ratio": lambda: fit(mr.FDivergenceRatio("js"), LEVEL),
    "capped": lambda: fit(mr.FDivergenceRatio("js"), PHI, ["a", "b", "c"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_gives_the_same_labels(kind, tmp_path):
    model, path = KINDS[kind](), tmp_path / "model.skops"
    mr.save_model(model, path)
    loaded = mr.load_model(path)
    X, _ = sample(PHI)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.certificate_ == model.certificate_
    assert loaded.trade_offs_[:1] == () or loaded.trade_offs_[0].labels == ("a", "b")
    if kind == "capped":
        assert set(loaded.caps_) <= {"a", "b"}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("several") / "model.skops"
    mr.save_model(fit(), path)
    return path.read_bytes()


@pytest.fixture
def saved(original, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(original)
    return path


def array_at(path, *names):
    """The member that an array of the model is kept in."""
    found = {}
    change_schema(path, lambda schema: found.update(node=attribute(schema, *names)))
    return found["node"]["file"]


@pytest.mark.parametrize(
    ("name", "values", "match"),
    [
        ("thresholds", [np.nan, 1.0, np.inf], "thresholds aren't numbers"),
        ("thresholds", [1.0, np.inf, np.inf], "thresholds aren't numbers"),
        ("thresholds", [1.0, 1.0], "thresholds aren't numbers"),
        ("thresholds", [9.0, 9.0, np.inf], "another threshold"),
        ("offsets", [np.nan, 0.0, 0.0], "offsets aren't numbers"),
        ("offsets", [0.0, 0.0], "offsets aren't numbers"),
    ],
)
def test_numbers_that_make_no_labels_are_refused(saved, name, values, match):
    member, buffer = array_at(saved, "decision_", name), io.BytesIO()
    np.save(buffer, np.array(values))
    write(saved, {**members_of(saved), member: buffer.getvalue()})
    refused(saved, match)


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("alpha", "a"), "0.01", "another promise|its certificates"),
        (("delta",), "0.2", "another classifier|another promise"),
        (("certificate_", "delta"), "0.5", "another classifier"),
        (("certificate_", "fallback"), '"c"', "other classes"),
        (("scores_", "reference"), "7", "other classes"),
        (("scores_", "n_classes"), "4", "other classes"),
        (("decision_", "fallback"), "2", "other classes"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(saved, path, value, match):
    def change(schema):
        *outer, name = path
        node = attribute(schema, *outer)["content"]
        node = (node if outer == ["alpha"] else node["content"])[name]
        # By an id of its own, or an equal object read before is taken.
        node.update(content=value, __id__=-1)

    change_schema(saved, change)
    refused(saved, match)


def test_a_header_with_another_certificate_is_refused(saved):
    members = members_of(saved)
    header = json.loads(members[HEADER])
    header["certificate"]["classes"][0]["alpha"] = 0.01
    write(saved, {**members, HEADER: json.dumps(header).encode()}, sealed=False)
    refused(saved, "certificates differ")


def test_a_model_of_several_classes_is_not_exported(tmp_path):
    with pytest.raises((TypeError, ValueError), match="MulticlassNeymanPearson"):
        mr.export_onnx(fit(), tmp_path / "model.onnx")
