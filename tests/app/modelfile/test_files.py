"""A model that is saved and loaded is the model that it was; others are refused."""

import ast
import pickle
import re
import shutil
import subprocess
import time
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import classifiers
import forging
import joblib
import numpy as np
import pytest
from classifiers import Total, certified
from forging import MODELS, PHI, forged, grouped, sample, sound, two
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import missratio as mr
from missratio.app.modelfile import ModelFileError, TableModel, load_table_model
from missratio.app.modelfile.checks import check_model, header_of
from missratio.classifier import PowerSearch
from missratio.threshold import BinomialRule, CalibrationSample

LINE = LogisticRegression()
WHOLE = mr.StepMissingness([1.0, 0.0], 0.0, 0.5)


def learned():
    X, y, phi, _ = classifiers.learned(700, 2)
    return certified(mr.KLIEP(), alpha=0.3, missingness={0: phi}, delta=0.05).fit(X, y)


MORE = {
    "penalties": lambda: two(mr.KLIEP(l2=np.array([0.0, 0.1])), WHOLE),
    "cross-validated": lambda: two(mr.KLIEPCV(random_state=0), PHI),
    "divergence": lambda: two(mr.FDivergenceRatio("js")),
    "gaussian": lambda: two(mr.KLIEP(mr.GaussianBasis(5), l2=0.1)),
    "polynomial": lambda: two(mr.KLIEP(mr.PolynomialBasis(2), l2=0.1)),
    "kernel": lambda: two(mr.KernelRatio(
        centers=20, sigma_grid=2, flat_within=0.0, random_state=0)),
    "classifier": lambda: two(mr.ClassifierRatio(LogisticRegression()), PHI),
    "learned": learned,
    "trees alone": lambda: two(forging.trees()),
    "grouped trees": lambda: grouped(estimator=forging.trees()),
    "frozen": lambda: two(FrozenEstimator(LINE.fit(*sample(2)))),
    "searched": lambda: two(PowerSearch({"line": LINE, "trees": forging.trees()}, 0.3)),
    "basis": lambda: two(mr.KLIEP(StandardScaler())),
    # Trees of other columns than the table's.
    "encoded": lambda: two(make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [0]),
            remainder="passthrough"),
        forging.trees())),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", [*MODELS, *MORE])
def test_a_loaded_model_is_the_one_that_was_saved(kind, tmp_path, monkeypatch):
    model = MORE[kind]() if kind in MORE else sound(kind)
    first, second = tmp_path / "first.skops", tmp_path / "second.skops"
    mr.save_model(model, first)
    loaded, whole = mr.load_model(first), model
    if isinstance(model, TableModel):
        assert loaded.report == model.report
        loaded, whole = loaded.classifier, model.classifier
    assert loaded.certificate_ == whole.certificate_
    X, groups = sample(2)[0], ["a", "b"] * 120
    if kind == "words":
        X = forging.pd.DataFrame({"p": X[:, 0], "q": ["up", "down", "new"] * 80})
    more = [groups] if hasattr(whole, "groups_") else []
    assert (loaded.predict(X, *more) == whole.predict(X, *more)).all()
    score = "class_scores" if hasattr(whole, "class_scores") else "score_samples"
    np.testing.assert_array_equal(getattr(loaded, score)(X), getattr(whole, score)(X))
    # The same model gives the same bytes, whenever and wherever it is saved.
    later = time.localtime(time.time() + 1e6)
    monkeypatch.setattr(time, "localtime", lambda *_: later)
    mr.save_model(deepcopy(model), second)
    assert second.read_bytes() == first.read_bytes()


MODELLED = {"missingness": {0: PHI}}
# Of every public estimator one that is fitted to rows of which some are missing.
EVERY = {
    "ClassifierRatio": mr.ClassifierRatio(LINE, **MODELLED),
    "FDivergenceRatio": mr.FDivergenceRatio(mr.objective.Pearson(), **MODELLED),
    "GaussianBasis": mr.GaussianBasis(5),
    "GroupedNeymanPearsonClassifier": lambda: grouped(),
    "ImputationEnsemble": mr.ImputationEnsemble(
        mr.TiltedImputer(**MODELLED, n_imputations=2, random_state=0), LINE
    ),
    "KLIEP": mr.KLIEP(**MODELLED),
    "KLIEPCV": mr.KLIEPCV(**MODELLED, random_state=0),
    "KernelRatio": mr.KernelRatio(centers=5, **MODELLED, random_state=0),
    "MulticlassNeymanPearsonClassifier": lambda: sound("several"),
    "NaiveBayesRatio": mr.NaiveBayesRatio(mr.KLIEP(**MODELLED)),
    "NeymanPearsonClassifier": mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.3, **MODELLED, random_state=0
    ),
    "ObjectiveRatio": mr.ObjectiveRatio(
        mr.objective.JensenShannonObjective(), **MODELLED
    ),
    "PolynomialBasis": mr.PolynomialBasis(2),
    "Ratio": mr.Ratio(**MODELLED, random_state=0),
    "TiltedImputer": mr.TiltedImputer(**MODELLED, random_state=0),
}
# And of every model of φ that is no code.
MODELS_OF_PHI = {
    "LogisticMissingness": lambda: PHI,
    "StepMissingness": lambda: WHOLE,
    "LearnedMissingness": lambda: learned().missingness[0],
}


def test_no_public_estimator_is_left_out():
    public = [n for n in mr.__all__ if isinstance(getattr(mr, n), type)]
    assert [*EVERY] == sorted(n for n in public if hasattr(getattr(mr, n), "fit"))


@cache
def kept(name):
    made = (EVERY | MODELS_OF_PHI)[name]
    return made() if callable(made) else made.fit(*sample(2, PHI))


KEEPERS = {
    "save_model": lambda model, path: (
        mr.save_model(model, path), mr.load_model(path)
    )[1],
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "joblib": lambda model, path: (joblib.dump(model, path), joblib.load(path))[1],
    "cloudpickle": lambda model, _: pickle.loads(
        pytest.importorskip("cloudpickle").dumps(model)
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("name", [*EVERY, *MODELS_OF_PHI])
def test_every_estimator_can_be_kept_by_itself(name, keeper, tmp_path):
    model = kept(name)
    again = KEEPERS[keeper](model, tmp_path / "model.skops")
    assert type(again) is type(model)
    uses = ("predict_log_ratio", "predict", "transform", "missing_probability")
    use = next(each for each in uses if hasattr(model, each))
    rows = sample(2)[0][:20]
    more = [["a", "b"] * 10] if name.startswith("Grouped") else []
    np.testing.assert_array_equal(
        getattr(again, use)(rows, *more), getattr(model, use)(rows, *more)
    )


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.skops"
    mr.save_model(sound("φ"), path)
    return path


def test_nothing_is_overwritten(saved):
    before = saved.read_bytes()
    # Neither is a model that can't be saved made first.
    for model in (mr.load_model(saved), Total().fit([[0.0]], [0])):
        with pytest.raises(FileExistsError):
            mr.save_model(model, saved)
    assert saved.read_bytes() == before
    mr.save_model(mr.load_model(saved), saved, force=True)


def test_folders_and_absent_files_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        mr.load_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        mr.load_model(tmp_path / "absent.skops")


def test_a_classifier_alone_has_no_report_to_show(saved):
    with pytest.raises(ModelFileError, match="saved from Python"):
        load_table_model(saved)


def with_function():
    phi = mr.FunctionMissingness(lambda X: 0.5 * (X[:, 0] > 0), maximum=0.5)
    return two(mr.KLIEP(), phi)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: mr.NeymanPearsonClassifier(mr.KLIEP()), NotFittedError, "not fitted"),
        (with_function, ModelFileError, r"FunctionMissingness.*no code"),
        (LogisticRegression, NotFittedError, "not fitted"),
        (lambda: mr.TiltedImputer(PHI, random_state=0).fit(sample(2, PHI)[0]),
         ModelFileError, "rows without labels can't be saved: fit it with y"),
        (lambda: forged("φ", "threshold_", 0.0), ModelFileError, "couldn't be loaded"),
    ],
)  # fmt: skip
def test_what_is_no_model_has_no_file(make, error, match, tmp_path):
    with pytest.raises(error, match=match):
        mr.save_model(make(), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


class Halved(mr.objective.KLIEPObjective):
    """Somebody's own objective."""


class Cautious(BinomialRule):
    """Somebody's own rule."""

    name = "cautious"


OWN = {
    "forest": lambda: two(RandomForestClassifier(10, random_state=0)),
    "objective": lambda: two(mr.ObjectiveRatio(Halved())),
    "rule": lambda: two(mr.KLIEP(), rule=Cautious()),
}


@pytest.mark.parametrize("name", OWN)
def test_types_that_both_sides_vouch_for_can_be_kept(name, tmp_path):
    model, path = OWN[name](), tmp_path / "model.skops"
    with pytest.raises(ModelFileError, match="if you vouch for") as caught:
        mr.save_model(model, path)
    trusted = ast.literal_eval(re.search(r"trusted=(\[.*?\])", str(caught.value))[1])
    mr.save_model(model, path, trusted=trusted)
    for fewer in ([], trusted[1:]):
        with pytest.raises(ModelFileError, match="Nothing of it was"):
            mr.load_model(path, trusted=fewer)
    again, X = mr.load_model(path, trusted=trusted), sample(2)[0]
    assert (again.predict(X) == model.predict(X)).all()


def test_a_model_of_which_no_calibration_row_was_observed_may_reject_all():
    bound = sound("φ").calibration_.sample.bound
    nothing = CalibrationSample.build(np.zeros(5), np.zeros(5), bound)
    facts = {
        "rows": 5, "observed": 0, "effective_rows": nothing.effective_rows,
        "threshold": np.inf, "certified": False, "estimated_error": 0.0,
        "error_bound": 0.0,
    }  # fmt: skip
    model = forged("φ", "calibration_.sample", nothing)
    model.threshold_ = np.inf
    model.certificate_ = replace(model.certificate_, **facts)
    check_model(model, header_of(model))
    model.certificate_ = replace(model.certificate_, certified=True)
    with pytest.raises(
        ModelFileError, match="not what its parameters and calibration rows"
    ):
        check_model(model, header_of(model))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_a_model_is_signed_and_verified_by_the_commands_as_they_are_printed(saved):
    text = (Path(__file__).parents[3] / "SECURITY.md").read_text(encoding="utf-8")
    *_, check = lines = [x for x in text.splitlines() if x.startswith("openssl ")]
    assert len(lines) == 4
    how = {"cwd": saved.parent, "shell": True, "capture_output": True}
    for line in lines:
        assert subprocess.run(line, **how).returncode == 0, line
    saved.write_bytes(saved.read_bytes() + b" ")
    assert subprocess.run(check, **how).returncode != 0
