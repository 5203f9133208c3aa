"""Mutated tables, plans, missingness files, states and models: read, or refused.

`make test` tries 2,000 inputs. `make fuzz` tries 100,000, shows how far it is, and says
for each kind how many were read and refused; the number is that of the environment
variable MISSRATIO_FUZZ. Inputs come in batches, each of a seed of its own: Hypothesis
remembers all that it has tried, and slows down with it.
"""

import io
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forging import (
    COLUMNS,
    FUZZED,
    forged_models,
    members_of,
    model_bytes,
    other_text,
    packed,
)
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from optional_packages import optional
from pyarrow import csv

import missratio as mr
from missratio._files import open_table
from missratio.app.modelfile import ModelFileError
from missratio.app.modelfile.models import TablePromise
from missratio.app.tables.labelled import read_labelled
from missratio.app.workflow import read_missingness, watch
from missratio.exceptions import TableError

xlsxwriter = optional("xlsxwriter")

INPUTS = int(os.environ.get("MISSRATIO_FUZZ", "2000"))
# Of computing, and of waiting: a machine may have other things to do.
SECONDS, WAITING = 30, 600
MOST_MEGABYTES = 500
BATCH = 500

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


@st.composite
def repacked(draw, base):
    """An archive with one member changed, under checksums that fit."""
    members = members_of(base)
    name = draw(st.sampled_from(sorted(members)))
    return packed({**members, name: draw(mutated([members[name]]))})


def csv_table():
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal():.3f},{rng.integers(9)},{['', 'red', 'blue'][i % 3]},{i % 2}"
        for i in range(12)
    ]
    return "\n".join(["p,q,colour,y", *rows]).encode()


def table_bytes(suffix, checksum=True):
    columns = {
        "p": [1.5, None, 2.5, 0.5], "c": ["u", "v", None, "u"], "y": [0, 1, 0, 1]
    }  # fmt: skip
    buffer = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(pa.table(columns), buffer, write_page_checksum=checksum)
    else:
        with xlsxwriter.Workbook(buffer, {"in_memory": True}) as book:
            book.set_properties({"created": datetime(2026, 1, 1)})
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
    labels = draw(st.sampled_from([cells, st.sampled_from("01")]))
    rows = draw(st.lists(st.tuples(*[cells] * width, labels), max_size=8))
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
    """Give inputs to a reader, which returns or refuses them; the others are kept."""
    count = max(10, int(share * INPUTS))
    before, began = megabytes(), time.process_time()
    seen, finds = Counter(), {}

    def attempt(content):
        # A file that replaces another under its name is another file.
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        try:
            with in_time(), warnings.catch_warnings():
                # A value that is odd is read, and said to be.
                warnings.simplefilter("ignore")
                read(path)
        except refusal as error:
            seen["refused" if str(error).strip() else "without a word"] += 1
        except Exception as error:
            seen["hang" if isinstance(error, TimeoutError) else "traceback"] += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            finds.setdefault((place.filename, place.lineno), (error, content))
        else:
            seen["read"] += 1

    for batch in range(0, count, BATCH):
        chosen = settings(
            max_examples=min(BATCH, count - batch), deadline=None, database=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        seed(batch)(chosen(given(strategy)(attempt)))()
        peak, seconds = megabytes(), time.process_time() - began
        if INPUTS > 2000:
            told = ", ".join(f"{number} {how}" for how, number in seen.items())
            line = f"{path.name}: {seen.total()} of {count}: {told}"
            line += f"; {seconds:.0f} s, {before:.0f} to {peak:.0f} MB"
            print(line, file=sys.__stderr__, flush=True)
        assert peak - before < MOST_MEGABYTES
    for place, (_, content) in enumerate(finds.values()):
        path.with_name(f"find-{place}-{path.name}").write_bytes(content)
    for error, _ in finds.values():
        raise AssertionError(f"{seen}, such as in {path.parent}") from error
    assert not seen["without a word"]


def read_table(path):
    read_labelled(open_table(path), "y")


def test_mutated_csv_tables(folder):
    strategy = mutated(CSV) | drawn_tables()
    fuzz(strategy, 0.3, folder / "t.csv", read_table, TableError)


@pytest.mark.parametrize(("suffix", "share"), [(".parquet", 0.15), (".xlsx", 0.005)])
def test_mutated_tables_of_other_kinds(folder, suffix, share):
    base = table_bytes(suffix)
    if suffix == ".xlsx":
        strategy = mutated([base]) | repacked(base)
    else:
        strategy = mutated([base, table_bytes(suffix, checksum=False)])
    fuzz(strategy, share, folder / f"t{suffix}", read_table, TableError)


WIDE = {"y": [0, 1, 0, 1], **{f"c{j}": [0.5, None, 1.5, j] for j in range(3000)}}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_mutated_wide_tables(folder, suffix):
    table, buffer = pa.table(WIDE), io.BytesIO()
    if suffix == ".csv":
        csv.write_csv(table, buffer)
    else:
        pq.write_table(table, buffer, use_dictionary=False, write_statistics=False)
    base = buffer.getvalue()
    # Most are refused for an odd cell; some have far more columns.
    more = b",".join([base.split(b"\n")[0]] * 40) + b"\n1"
    strategy = mutated([base, base, more])
    fuzz(strategy, 0.0025, folder / f"w{suffix}", read_table, TableError)


def test_mutated_plans(folder):
    path = folder / "p.csv"
    mr.plan_queries(FRAME, Y, per_feature=2, random_state=0).write(path)
    base = path.read_bytes()
    bases = [base, base.replace(b",", b";"), base.replace(b",,", b",1.5,")]

    def read(path):
        mr.QueryPlan.read(path, FRAME, Y)

    fuzz(mutated(bases), 0.25, path, read, TableError)


def test_mutated_missingness_files(folder):
    def read(path):
        read_missingness(path, COLUMNS, [0, 1])

    fuzz(mutated([PHI]), 0.19, folder / "phi.toml", read, (TableError,))


PROMISES = [TablePromise(0, None, 0.1, 0.05), TablePromise(1, None, 0.2, 0.05)]


@cache
def state_bytes(tables=2):
    """A state of `missratio watch`, after some tables."""
    monitors = [mr.TypeIErrorMonitor(each.alpha, each.delta) for each in PROMISES]
    for _ in range(tables):
        for monitor in monitors:
            monitor.update(np.arange(30) % 9 == 0)
    content = {
        "format": watch.FORMAT,
        "model_sha256": "0" * 64,
        "tables": [f"{table:064}" for table in range(tables)],
        "held": [],
        "monitors": [monitor.to_dict() for monitor in monitors],
    }
    return json.dumps(content).encode()


@st.composite
def sealed_states(draw):
    """States with a value changed, and a checksum that fits where there is one."""
    text = draw(other_text(state_bytes()) | mutated([state_bytes()]))
    try:
        content = json.loads(text)
        return json.dumps({**content, "sha256": watch._checksum(content)}).encode()
    except (ValueError, TypeError, RecursionError):
        return text


def read_state(path):
    """A state that isn't refused can be counted on."""
    monitors, tables, held = watch._read_state(path, "0" * 64, PROMISES)
    for monitor in monitors.values():
        before = monitor.n_rows
        monitor.update(np.zeros(5))
        assert monitor.n_rows == before + 5 > 0
        found = json.loads(json.dumps(monitor.to_dict(), allow_nan=False))
        assert mr.TypeIErrorMonitor.from_dict(found).n_rows == monitor.n_rows
    assert all(isinstance(each, str) for each in [*tables, *held])


def test_forged_states_of_watch(folder):
    fuzz(sealed_states(), 0.02, folder / "s.json", read_state, TableError)


ROWS = np.array([[0.5, -0.5], [1e9, 2.0], [-1e300, 0.0], [3.0, 1e-300]])


def load_and_predict(path):
    """A model that isn't refused gives each row one of its labels."""
    model = mr.load_model(path)
    rows = ROWS
    if hasattr(model, "encoder"):
        rows = pa.table(dict(zip(model.encoder.names, ROWS.T, strict=True)))
    with np.errstate(over="ignore", invalid="ignore"):
        labels = model.predict(rows)
    assert len(labels) == len(ROWS)
    assert set(labels.tolist()) <= set(model.classes_.tolist())


@pytest.mark.parametrize("kind", FUZZED)
def test_forged_models(folder, kind):
    base = model_bytes(folder, kind)
    strategy = forged_models(base, mutated) | mutated([base])
    path = folder / f"{kind}.skops"
    fuzz(strategy, 0.06 / len(FUZZED), path, load_and_predict, ModelFileError)


def test_what_is_fuzzed_is_sound_to_begin_with(folder):
    path = Path(folder / "sound")
    for content in CSV:
        path.with_suffix(".csv").write_bytes(content)
        table = open_table(path.with_suffix(".csv"))
        assert len(read_labelled(table, "y").y) == 12
    content = json.loads(state_bytes())
    sealed = {**content, "sha256": watch._checksum(content)}
    path.with_suffix(".json").write_text(json.dumps(sealed))
    read_state(path.with_suffix(".json"))
    path.with_suffix(".toml").write_bytes(PHI)
    assert len(read_missingness(path.with_suffix(".toml"), COLUMNS, [0, 1])) == 2
