"""A model that is saved and loaded is the model that it was."""

import re
import sys
import time
import types
from copy import deepcopy
from dataclasses import replace
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.app.modelfile import ModelFileError


def test_saved_and_loaded_it_predicts_the_same(classifier, rows, tmp_path):
    path = tmp_path / "model.skops"
    mr.save_model(classifier, path)
    loaded = mr.load_model(path)
    assert loaded.certificate_ == classifier.certificate_
    np.testing.assert_array_equal(
        loaded.score_samples(rows), classifier.score_samples(rows)
    )
    np.testing.assert_array_equal(loaded.predict(rows), classifier.predict(rows))


def test_the_same_model_gives_the_same_bytes(classifier, tmp_path, monkeypatch):
    first, second = tmp_path / "first.skops", tmp_path / "second.skops"
    mr.save_model(classifier, first)
    later = time.localtime(time.time() + 1e6)
    monkeypatch.setattr(time, "localtime", lambda *_: later)
    mr.save_model(deepcopy(classifier), second)
    assert second.read_bytes() == first.read_bytes()


def test_what_is_not_fitted_cannot_be_saved(tmp_path):
    path = tmp_path / "m.skops"
    with pytest.raises(NotFittedError, match="not fitted yet"):
        mr.save_model(mr.NeymanPearsonClassifier(mr.KLIEP()), path)
    assert not path.exists()


def test_nothing_is_overwritten(saved):
    before = saved.read_bytes()
    with pytest.raises(FileExistsError):
        mr.save_model(mr.load_model(saved), saved)
    assert saved.read_bytes() == before
    mr.save_model(mr.load_model(saved), saved, force=True)


def test_functions_cannot_be_saved(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    phi = mr.FunctionMissingness(lambda X: 0.5 * (X[:, 0] > 0), maximum=0.5)
    X[:200] = mr.corrupt(X[:200], phi, 0)
    model = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.3, missingness={0: phi}, random_state=0
    ).fit(X, y)
    with pytest.raises(ModelFileError, match=r"FunctionMissingness.*no code"):
        mr.save_model(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::missratio.classifier.NoPowerWarning")
def test_other_estimators_cannot_be_saved(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    X[200:] += 1.0
    forest = RandomForestClassifier(5, min_samples_leaf=20, random_state=0)
    model = mr.NeymanPearsonClassifier(forest, alpha=0.3, random_state=0).fit(X, y)
    with pytest.raises(ModelFileError, match=r"can't hold .*RandomForest"):
        mr.save_model(model, tmp_path / "model.skops")


def test_folders_and_absent_files_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        mr.load_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        mr.load_model(tmp_path / "absent.skops")


def two_groups():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 2)) + 3.0 * y[:, None]
    return mr.GroupedNeymanPearsonClassifier(
        LogisticRegression(), alpha=0.2, delta=0.2, random_state=0
    ).fit(X, y, ["a", "b"] * 200)


def test_a_classifier_with_groups_survives(tmp_path):
    model, path = two_groups(), tmp_path / "model.skops"
    mr.save_model(model, path)
    again = mr.load_model(path)
    assert again.certificate_ == model.certificate_
    X, groups = np.random.default_rng(1).normal(1, 2, (50, 2)), ["a", "b"] * 25
    assert (again.predict(X, groups) == model.predict(X, groups)).all()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"threshold": -9.0}, "for another threshold"),
        ({"level": 0.01}, "for another promise"),
        ({"rows": 9}, "for another promise"),
        ({"group": "c"}, "for other groups"),
        ({"delta": 0.01}, "for another promise"),
    ],
)
def test_a_promise_to_a_group_that_was_changed_is_refused(tmp_path, change, match):
    model, path = two_groups(), tmp_path / "model.skops"
    kept = model.certificate_
    promises = (replace(kept.promises[0], **change), *kept.promises[1:])
    model.certificate_ = replace(kept, promises=promises)
    mr.save_model(model, path)
    with pytest.raises(ModelFileError, match=match):
        mr.load_model(path)


FOREST = [
    "sklearn.ensemble._forest.RandomForestClassifier",
    "sklearn.tree._classes.DecisionTreeClassifier",
    "sklearn.tree._tree.Tree",
]


def test_types_that_both_sides_vouch_for_can_be_kept(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 2)) + 1.5 * y[:, None]
    forest = RandomForestClassifier(10, random_state=0)
    model = mr.NeymanPearsonClassifier(forest, alpha=0.1, random_state=0).fit(X, y)
    path = tmp_path / "model.skops"
    with pytest.raises(ModelFileError, match=re.escape(str(FOREST))):
        mr.save_model(model, path)
    mr.save_model(model, path, trusted=FOREST)
    with pytest.raises(ModelFileError, match="Nothing of it was"):
        mr.load_model(path)
    with pytest.raises(ModelFileError, match="Nothing of it was"):
        mr.load_model(path, trusted=FOREST[:2])
    again = mr.load_model(path, trusted=FOREST)
    assert (again.predict(X) == model.predict(X)).all()


def test_a_file_names_classes_and_not_where_they_are_defined(tmp_path, monkeypatch):
    """A class that has moved within its room since is found again."""
    X, y = np.random.default_rng(0).normal(size=(600, 2)), np.repeat([0, 1], 300)
    X[y == 1] += 1.5
    model = mr.NeymanPearsonClassifier(mr.KLIEP(l2=0.1), alpha=0.1, random_state=0)
    path = tmp_path / "model.skops"
    mr.save_model(model.fit(X, y), path)
    with ZipFile(path) as members:
        schema = members.read("schema.json").decode()
    assert "missratio." not in schema
    moved = types.ModuleType("missratio.ratio.elsewhere")
    moved.KLIEP = mr.KLIEP
    monkeypatch.setitem(sys.modules, moved.__name__, moved)
    monkeypatch.setattr(mr.KLIEP, "__module__", moved.__name__)
    assert (mr.load_model(path).predict(X) == model.predict(X)).all()
