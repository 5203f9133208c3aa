"""Models of every kind, their files, and forgeries of them under digests that fit."""

import copy
import io
import json
from functools import cache
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
from classifiers import certified
from data import corrupted, look_up
from hypothesis import strategies as st
from optional_packages import optional
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr
from missratio._files.cells import Cells
from missratio.app.modelfile import TableModel, TrainingData
from missratio.app.modelfile.files import HEADER, SCHEMA, _digest
from missratio.app.tables.columns import Encoder, TableColumn

pd = optional("pandas")
PHI = mr.LogisticMissingness([-2.0, -np.inf], [0.5, 0.0])
COLUMNS = Encoder((TableColumn("p"), TableColumn("q")), Cells())
VALUES = [
    None, True, "", "NaN", "1e999", "builtins", "eval", [], {}, 0, -1, 1, 2**31, 10**12,
    -(10**12), 10**400, 0.5, float("nan"), float("inf"), float("-inf"),
]  # fmt: skip


def sample(n_classes, phi=None):
    rng = np.random.default_rng(0)
    y = np.arange(120 * n_classes) % n_classes
    X = rng.normal(size=(len(y), 2))
    X[:, 0] += (1.5 if n_classes == 2 else 3.0) * (y == 1)
    X[:, 1] += 2.5 * (y == 2)
    return X if phi is None else corrupted(X, y, {0: phi}), y


def two(estimator, phi=None, **more):
    options = {"alpha": 0.3, "delta": 0.05, "missingness": phi and {0: phi}, **more}
    return certified(estimator, **options).fit(*sample(2, phi))


def several(estimator, order=None):
    return mr.MulticlassNeymanPearsonClassifier(
        estimator, alpha={0: 0.4, 1: 0.45}, order=order, random_state=0
    ).fit(*sample(3))


def table(classifier, **more):
    labels = classifier.classes_.tolist()
    rows, missing = dict.fromkeys(labels, 300), {label: {} for label in labels}
    training = TrainingData("t.csv", "0" * 64, rows, missing)
    dropped = tuple(value for name, value in more.items() if name == "group_column")
    return TableModel(
        classifier, COLUMNS, "y", dropped, "kliep", training, "{}", **more
    )


def grouped(estimator=None, **options):
    rng = np.random.default_rng(0)
    y, groups = np.repeat([0, 1], 300), np.array(["a", "b"] * 300)
    X = rng.normal(size=(600, 2)) + 3.0 * y[:, None] + (groups == "b")[:, None]
    return mr.GroupedNeymanPearsonClassifier(
        estimator or LogisticRegression(), alpha=0.2, delta=0.2,
        random_state=0, **options,
    ).fit(X, y, groups)  # fmt: skip


def capped():
    """Three ordered classes, of which one or two have a cap on their weights."""
    phi = mr.LogisticMissingness([-2.0, -2.0], [0.8, 0.0])
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 900)
    X = rng.normal(size=(2700, 2)) + np.array([(0, 0), (3, 0), (1, 3)])[y]
    models = dict.fromkeys(range(3), phi)
    model = mr.MulticlassNeymanPearsonClassifier(
        mr.FDivergenceRatio("js"), alpha={0: 0.2, 1: 0.25}, order=[0, 1, 2],
        missingness=models, random_state=0,
    ).fit(corrupted(X, y, models), y)  # fmt: skip
    assert 1 in model.caps_
    return model


def beyond():
    """Two classes, and a cap on the weights of the one."""
    phi = mr.LogisticMissingness([-2.0, -2.0], [1.5, 0.0])
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 900)
    X = corrupted(rng.normal(size=(1800, 2)) + 1.5 * y[:, None], y, {0: phi})
    options = {"alpha": 0.2, "delta": 0.05, "missingness": {0: phi}}
    model = certified(mr.KLIEP(), rule="thinning", **options).fit(X, y)
    assert model.calibration_.trust.cap
    return model


def looked_up():
    """Two classes, of one of which some of the lost rows were looked up."""
    rng, y = np.random.default_rng(0), np.arange(1600) % 2
    Z = rng.normal(size=(1600, 2)) + 1.5 * y[:, None]
    lost = ((rng.uniform(size=1600) < 0.2) & (y == 0))[:, None] & [True, False]
    X, inclusion = look_up(Z, lost, 80, rng)
    model = certified(mr.KLIEP(), alpha=0.3, delta=0.05)
    return model.fit(X, y, inclusion=inclusion.min(axis=1))


def trees():
    return HistGradientBoostingClassifier(max_iter=3, random_state=0)


def categories():
    """Trees that split by the first column's categories."""
    X, y = sample(2)
    X[:, 0] = X[:, 0].round().clip(-2, 2)
    by_category = trees().set_params(categorical_features=[0])
    return certified(by_category, alpha=0.3, delta=0.05).fit(X, y)


def ensemble():
    imputer = mr.TiltedImputer(n_imputations=2, random_state=0)
    return mr.ImputationEnsemble(imputer, trees())


def words():
    """No estimator given, and a column of words: columns are taken by their names."""
    X, y = sample(2)
    words = np.where(X[:, 1] > 0, "up", np.where(X[:, 1] > -1, "down", "low"))
    frame = pd.DataFrame({"p": X[:, 0], "q": words})
    return certified(None, alpha=0.3, delta=0.05).fit(frame, y)


MODELS = {
    "table": lambda: table(two(mr.KLIEP())),
    "φ": lambda: two(mr.KLIEP(), PHI),
    "beyond": beyond,
    "kernel": lambda: two(mr.KernelRatio(centers=5, random_state=0), PHI),
    "bayes": lambda: two(mr.NaiveBayesRatio(mr.KLIEP()), PHI),
    "trees": lambda: two(make_pipeline(StandardScaler(), trees())),
    "categories": categories,
    "imputed": lambda: two(ensemble(), PHI),
    # Its rule has a sample of its own, of training rows.
    "tuned": lambda: two(mr.KLIEP(), PHI, rule="tuned-betting"),
    "classes": lambda: table(several(LogisticRegression())),
    "several": lambda: several(LogisticRegression()),
    "ratios": lambda: several(mr.FDivergenceRatio("js")),
    "order": lambda: several(trees(), order=[0, 1, 2]),
    "capped": capped,
    "groups": grouped,
    "grouped table": lambda: table(grouped(), group_column="who"),
    "words": words,
    "looked up": looked_up,
}
"""A sound model of each kind."""
FUZZED = ["table", "φ", "kernel", "bayes", "trees", "imputed", "classes", "order",
          "categories"]  # fmt: skip


@cache
def sound(kind):
    return MODELS[kind]()


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
    """A sound model in which one part, by its path, is another."""
    names = [int(name) if name.isdigit() else name for name in path.split(".")]
    return with_part(sound(kind), names, value)


def model_bytes(folder, kind):
    """The file of a sound model."""
    path = folder / "model.skops"
    mr.save_model(sound(kind), path, force=True)
    return path.read_bytes()


def members_of(content):
    with ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members):
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return buffer.getvalue()


def sealed(members):
    """An archive whose header has the digest of the other members, where it can."""
    try:
        header = json.loads(members[HEADER])
        rest = {name: body for name, body in members.items() if name != HEADER}
        header["content_sha256"] = _digest(rest)
        members = {**members, HEADER: json.dumps(header).encode()}
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return packed(members)


def _inner(tree):
    """Every list and mapping of a JSON tree that has something in it."""
    nodes = [tree]
    for node in nodes:
        inside = node.values() if isinstance(node, dict) else node
        nodes += [item for item in inside if isinstance(item, dict | list)]
    return [node for node in nodes if node]


@st.composite
def other_text(draw, content):
    """A JSON text with a value replaced by another, or by another part of it."""
    tree = json.loads(content)
    nodes = _inner(tree)
    node = draw(st.sampled_from(nodes))
    keys = sorted(node) if isinstance(node, dict) else list(range(len(node)))
    values = st.sampled_from(VALUES) | st.integers() | st.floats() | st.text(max_size=5)
    kind = draw(st.sampled_from(["value", "number in words", "part", "lost"]))
    key = draw(st.sampled_from(keys))
    if kind == "value":
        node[key] = draw(values)
    elif kind == "number in words":
        node[key] = json.dumps(draw(values))
    elif kind == "part":
        node[key] = json.loads(json.dumps(draw(st.sampled_from(nodes))))
    else:
        del node[key]
    return json.dumps(tree).encode()


@st.composite
def other_array(draw, content):
    """An array with another value in a place, or of another shape or type."""
    array = np.load(io.BytesIO(content))
    kind = draw(st.sampled_from(["value", "value", "value", "shape", "type"]))
    if kind == "value" and array.size:
        place = draw(st.integers(0, array.size - 1))
        cells = array.reshape(-1)
        if array.dtype.names:
            cells = cells[draw(st.sampled_from(array.dtype.names))]
        values = [-1, 0, 1, 10**6, -(10**12), 2**62, np.nan, np.inf, -np.inf, 1e308]
        with np.errstate(all="ignore"):
            value = np.asarray(draw(st.sampled_from(values)))
            cells[place] = value.astype(cells.dtype)
    elif kind == "shape":
        flat = array.reshape(-1)
        array = draw(st.sampled_from([flat[:0], flat, array[None], flat.repeat(2)]))
    elif array.dtype.names is None:
        kinds = ["<f4", "<i8", "<u8", "|b1", "<c16", "<U8", ">f8", "<f2"]
        with np.errstate(all="ignore"):
            array = array.astype(str).astype("<U8") if array.dtype.kind == "U" else (
                array.astype(draw(st.sampled_from(kinds)))
            )  # fmt: skip
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@st.composite
def forged_models(draw, base, otherwise):
    """A model with a value, a part or an array changed, under a digest that fits.

    `otherwise` is the strategy of a member that is changed without a look at it.
    """
    members = members_of(base)
    names = st.sampled_from([SCHEMA, HEADER]) | st.sampled_from(sorted(members))
    for name in draw(st.lists(names, min_size=1, max_size=2, unique=True)):
        blindly = draw(st.integers(0, 4)) == 0
        change = other_array if name.endswith(".npy") else other_text
        content = members[name]
        members[name] = draw(otherwise([content]) if blindly else change(content))
    return sealed(members)
