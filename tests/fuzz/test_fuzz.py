"""Mutated tables, plans, missingness files and models: read, or refused in words.

`make test` tries 2,000 inputs. `make fuzz` tries 100,000 and shows how far it is; the
number is that of the environment variable MISSRATIO_FUZZ.
"""

import io
import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optional_packages import optional

import missratio as mr
from missratio._files import Cells, open_table
from missratio.app.modelfile import ModelFileError, TableModel, TrainingData
from missratio.app.modelfile._archive import HEADER, SCHEMA, _digest
from missratio.app.tables import Encoder, TableColumn, Wanted, read_labelled
from missratio.app.workflow import PhiFileError, read_missingness
from missratio.exceptions import TableError

xlsxwriter = optional("xlsxwriter")

INPUTS = int(os.environ.get("MISSRATIO_FUZZ", "2000"))
# Of computing, and of waiting: a machine may have other things to do.
SECONDS, WAITING = 30, 600
MOST_MEGABYTES = 500

TOKENS = [
    b'"', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\0", b"\xff", b"\xe4", b"\x80",
    b"\xef\xbb\xbf", b"\xff\xfe", b"1e999", b"-1e-400", b"9" * 400, b"9" * 5000, b"nan",
    b"inf", b"-", b"1.234", b"1,234", b"1.234,5", b"01", b"-999", b"=1+1", b"@x", b"[",
    b"]", b"{", b"}", b"[" * 3000, b"x" * 140_000, b"\xc2\xa0", b"\xe2\x88\x92",
    b"true", b"null", b"\x1b[2J", b"__loader__", b"1j", b"\xf0\x9f\x98\x80", b"a=1",
    b"=", b".",
]  # fmt: skip


@st.composite
def mutated(draw, bases):
    """One of some contents, with a few pieces changed, moved, repeated or lost."""
    content = bytearray(draw(st.sampled_from(bases)))
    places = st.floats(0.0, 1.0, exclude_max=True)
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["flip", "insert", "delete", "copy", "cut"]))
        place = int(draw(places) * len(content))
        if kind == "flip" and content:
            content[place] ^= draw(st.integers(1, 255))
        elif kind == "insert":
            token = draw(st.sampled_from(TOKENS) | st.binary(max_size=8))
            content[place:place] = token
        elif kind == "delete":
            del content[place : place + draw(st.integers(1, 40))]
        elif kind == "copy":
            start = int(draw(places) * len(content))
            content[place:place] = content[start : start + draw(st.integers(1, 200))]
        elif draw(st.booleans()):
            del content[place:]
    return bytes(content)


def csv_table():
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal():.3f},{rng.integers(9)},{'red' if i % 3 else ''},{i % 2}"
        for i in range(12)
    ]
    return "\n".join(["p,q,colour,y", *rows]).encode()


def table_bytes(suffix):
    columns = {
        "p": [1.5, None, 2.5, 0.5], "c": ["u", "v", None, "u"], "y": [0, 1, 0, 1]
    }  # fmt: skip
    buffer = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(pa.table(columns), buffer, write_page_checksum=True)
    else:
        with xlsxwriter.Workbook(buffer, {"in_memory": True}) as book:
            sheet = book.add_worksheet()
            for place, (name, cells) in enumerate(columns.items()):
                sheet.write_column(
                    0, place, [name, *("" if c is None else c for c in cells)]
                )
    return buffer.getvalue()


TABLE = csv_table()
CSV = [
    TABLE,
    TABLE.replace(b",", b";").replace(b".", b","),
    TABLE.replace(b",", b"\t"),
    TABLE.decode().encode("utf-16"),
    TABLE.replace(b"red", b'"r,\n""d"'),
]
cells = st.one_of(
    st.sampled_from([t.decode("latin-1") for t in TOKENS if len(t) < 500]),
    st.text(max_size=6),
    st.floats().map(repr),
    st.integers().map(str),
)


@st.composite
def drawn_tables(draw):
    """A table of any cells, in some dialect."""
    separator = draw(st.sampled_from(",;\t|"))
    width = draw(st.integers(1, 4))
    names = [*(f"c{j}" for j in range(width)), "y"]
    rows = draw(st.lists(st.lists(cells, min_size=width + 1, max_size=width + 1),
                         max_size=8))  # fmt: skip
    quote = draw(st.booleans())

    def line(row):
        return separator.join(
            '"' + c.replace('"', '""') + '"' if quote else c for c in row
        )

    text = draw(st.sampled_from(["\n", "\r\n"])).join(map(line, [names, *rows]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    return text.encode(encoding, errors="replace")


X = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, np.nan], [3.0, 4.0]] * 3)
Y = np.arange(12) % 2
FRAME = pa.table({"p": X[:, 0], "q": X[:, 1]})


def plan_bytes(suffix, folder):
    plan = mr.plan_queries(FRAME, Y, per_feature=2, random_state=0)
    path = folder / f"plan{suffix}"
    plan.write(path, force=True)
    return path.read_bytes()


PHI = b"""
[classes.0]
missing = "values"
kind = "logistic"
features.p = { intercept = -9.0, coef = 0.1 }
[classes.1]
missing = "rows"
kind = "step"
direction = { p = 1.0, q = -0.5 }
threshold = 1.0
probability = 0.9
"""
ENCODER = Encoder((TableColumn("p"), TableColumn("q")), Cells())


def model_bytes(folder):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(200, 2)), np.arange(200) % 2
    rows[labels == 1] += 1.0
    classifier = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.3, random_state=0).fit(
        rows, labels
    )
    training = TrainingData("t.csv", "0" * 64, {0: 100, 1: 100}, {0: {}, 1: {}})
    model = TableModel(classifier, ENCODER, "y", (), "kliep", training, "{}")
    mr.save_model(model, folder / "model.skops", force=True)
    return (folder / "model.skops").read_bytes()


@st.composite
def forged_models(draw, base):
    """A model with one member or one value changed, under a digest that fits."""
    with ZipFile(io.BytesIO(base)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = draw(st.sampled_from(sorted(members)))
    if name in (SCHEMA, HEADER) and draw(st.booleans()):
        tree = json.loads(members[name])
        nodes = [tree]
        for node in nodes:
            inside = node.values() if isinstance(node, dict) else node
            nodes += [item for item in inside if isinstance(item, dict | list)]
        node = draw(st.sampled_from([each for each in nodes if each]))
        keys = sorted(node) if isinstance(node, dict) else list(range(len(node)))
        value = draw(
            st.none() | st.integers() | st.floats() | st.text(max_size=5)
            | st.sampled_from([[], {}, "NaN", "1e999", "builtins", "eval", -1, True])
        )  # fmt: skip
        node[draw(st.sampled_from(keys))] = value
        members[name] = json.dumps(tree).encode()
    else:
        members[name] = draw(mutated([members[name]]))
    try:
        header = json.loads(members[HEADER])
        rest = {key: content for key, content in members.items() if key != HEADER}
        header["content_sha256"] = _digest(rest)
        members[HEADER] = json.dumps(header).encode()
    except (ValueError, TypeError):
        pass
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for key, content in members.items():
            archive.writestr(key, content)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@contextmanager
def in_time():
    """Fail where an input takes too long."""

    def stop(*_):
        raise TimeoutError(f"More than {SECONDS} s for one input.")

    if not hasattr(signal, "setitimer"):
        yield
        return
    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, SECONDS),
        signal.SIGALRM: (signal.ITIMER_REAL, WAITING),
    }
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def megabytes():
    resource = pytest.importorskip("resource")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fuzz(strategy, share, path, read, refusal):
    """Give inputs to a reader, which returns or refuses them."""
    count, seen = max(20, int(share * INPUTS)), [0]
    if path.suffix == ".xlsx":
        # Each of them takes a process.
        count = max(5, count // 10)

    @settings(
        max_examples=count, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def attempt(content):
        seen[0] += 1
        if INPUTS > 2000 and seen[0] % 500 == 0:
            done = f"{path.name}: {seen[0]} of {count} inputs, {megabytes():.0f} MB"
            print(done, file=sys.__stderr__, flush=True)
        # A file that replaces another under its name is another file.
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        with in_time():
            try:
                read(path)
            except refusal as error:
                said = str(error).strip()
            else:
                said = "read"
        assert said

    before = megabytes()
    attempt()
    assert megabytes() - before < MOST_MEGABYTES


def read_table(path):
    read_labelled(open_table(path), Wanted("y"))


def test_mutated_csv_tables(folder):
    strategy = mutated(CSV) | drawn_tables()
    fuzz(strategy, 0.35, folder / "t.csv", read_table, TableError)


@pytest.mark.parametrize(("suffix", "share"), [(".parquet", 0.1), (".xlsx", 0.05)])
def test_mutated_tables_of_other_kinds(folder, suffix, share):
    strategy = mutated([table_bytes(suffix)])
    fuzz(strategy, share, folder / f"t{suffix}", read_table, TableError)


@pytest.mark.parametrize(
    ("suffix", "share"), [(".csv", 0.2), (".parquet", 0.05), (".xlsx", 0.05)]
)
def test_mutated_plans(folder, suffix, share):
    base = plan_bytes(suffix, folder)
    bases = [base]
    if suffix == ".csv":
        bases += [base.replace(b",", b";"), base.replace(b",,", b",1.5,")]

    def read(path):
        mr.QueryPlan.read(path, FRAME, Y)

    fuzz(mutated(bases), share, folder / f"p{suffix}", read, TableError)


def test_mutated_missingness_files(folder):
    def read(path):
        read_missingness(path, ENCODER, [0, 1])

    fuzz(mutated([PHI]), 0.19, folder / "phi.toml", read, PhiFileError)


def test_mutated_models(folder):
    base = model_bytes(folder)
    strategy = forged_models(base) | mutated([base])
    path = folder / "m.skops"
    fuzz(strategy, 0.06, path, mr.load_model, ModelFileError)


def test_what_is_fuzzed_is_sound_to_begin_with(folder):
    path = Path(folder / "sound")
    for content in CSV:
        path.with_suffix(".csv").write_bytes(content)
        assert len(read_labelled(
            open_table(path.with_suffix(".csv")), Wanted("y", blank_level=True)
        ).y) == 12  # fmt: skip
    path.with_suffix(".toml").write_bytes(PHI)
    assert len(read_missingness(path.with_suffix(".toml"), ENCODER, [0, 1])) == 2
    path.with_suffix(".skops").write_bytes(model_bytes(folder))
    mr.load_model(path.with_suffix(".skops"))
