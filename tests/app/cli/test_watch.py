"""missratio watch, as cron would use it."""

import hashlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from commands import run

import missratio as mr
from missratio.app.options import Listener, WatchOptions
from missratio.app.workflow import watch as watch_module
from missratio.exceptions import TableError


@pytest.fixture
def watch(patients_model):
    """What a run found, or what was said where it is refused."""

    def command(table, *words, status=0, model=patients_model):
        result = run("watch", model, table, "--json", *words, status=status)
        return json.loads(result.stdout) if status in (0, 6) else result.stderr

    return command


def test_a_promise_kept_and_then_broken(watch, day, patients_model):
    first, second = day(5), day(6, moved=15.0)
    kept, again = watch(first), watch(first)
    assert (kept["alarm"], kept["seen_before"]) == (False, False)
    assert again["seen_before"]
    assert again["rows"] == kept["rows"]
    assert "ALARM" in run("watch", patients_model, second, status=6).stdout


def test_rows_with_blanks_weigh_nothing_and_the_others_what_phi_says(
    watch, day, patients_model
):
    table = pd.read_csv(day(5))
    well, phi = table.state == "well", mr.LogisticMissingness([-9.0, -2.0], [0.1, 0.0])
    values = table.loc[well, ["pulse", "sugar"]].to_numpy()
    wrong = mr.load_model(patients_model).predict(table)[well] == "sick"
    kept = mr.corrupt(values, phi, np.random.default_rng(3))
    table.loc[well, ["pulse", "sugar"]] = kept
    table.to_csv(path := patients_model.with_name("lossy.csv"), index=False)
    odds = 1.0 / (1.0 + np.exp([9.0, 2.0] - values * [0.1, 0.0]))
    weights = np.prod(1.0 / (1.0 - odds), axis=1) * ~np.isnan(kept).any(axis=1)
    found = watch(path)
    assert found["rows"] == well.sum()
    assert found["error"] == pytest.approx((weights * wrong).mean())


def test_the_state_of_another_model_is_refused(fit, watch, day, tmp_path):
    other, _ = fit(out="other.skops", alpha=0.3)
    state = tmp_path / "state.json"
    watch(day(5), "--state", state)
    before, table = state.read_bytes(), day(6)
    said = watch(table, "--state", state, model=other, status=3)
    assert "about another model" in said
    assert state.read_bytes() == before
    sound = json.loads(before)
    levels = mr.TypeIErrorMonitor(0.3).to_dict()
    for change in ({"model_sha256": "0" * 64}, {"monitors": [levels]}):
        state.write_text(sealed({**sound, **change}))
        said = watch(day(6), "--state", state, status=3)
        assert "about another model" in said
    monitor = sound["monitors"][0]
    flipped = sound["tables"][0].translate(str.maketrans("0123456789", "1234567890"))
    for content, message in (
        *((text, "not what `missratio watch` writes") for text in ("{}", "[]")),
        *((json.dumps({**sound, "format": number}), "written by another version")
          for number in (3, 9e99)),
        (json.dumps({**sound, "tables": [flipped]}), "its checksum is another"),
        (before.decode().replace('"n_rows": ', '"n_rows": 1e999'), "is damaged"),
        *((sealed({**sound, **change}), "is damaged") for change in (
            *({"monitors": [{**monitor, **change}]} for change in (
                {"capital": [-1e300] * 24}, {"n_rows": -5}, {"wrong_weight": -1.0},
                {"alarm_row": 1e30}, {"n_rows": 10**9})),
            {"tables": {"a": 1}}, {"tables": []}, {"tables": sound["tables"] * 2},
            {"held": "abc"}, {"held": [3]}, {"held": None})),
        ("1," * 2**23, "has more than"),
    ):  # fmt: skip
        state.write_text(content)
        said = watch(table, "--state", state, status=3)
        assert message in said
        assert "--state" in said


def test_a_table_of_other_columns_or_labels_is_refused(watch, day):
    table, path = pd.read_csv(day(5)), day(5).with_name("other.csv")
    for odd, message in (
        (table.assign(weight=1), "Leave them out of the table"),
        (table.drop(columns="sugar"), "'sugar'"),
        (table.replace("well", "fine"), "'fine' is none of them"),
    ):
        odd.to_csv(path, index=False)
        assert message in watch(path, status=3)
    with pytest.raises(TableError, match="nothing that could be watched"):
        watch_module.watch_table(
            SimpleNamespace(promises={}),
            WatchOptions(model_file=path, labelled=path),
            Listener(),
        )


def sealed(content):
    """A state that somebody wrote who knows how its checksum is made."""
    del content["sha256"]
    text = json.dumps(content, sort_keys=True)
    content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(content)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows can't hold a folder")
def test_runs_at_the_same_time_lose_no_table(
    patients_model, day, tmp_path, monkeypatch
):
    state, days = tmp_path / "state.json", [day(seed) for seed in (5, 6, 7)]
    model, read = mr.load_model(patients_model), watch_module._read_state

    def read_slowly(*given):
        found = read(*given)
        time.sleep(0.5)
        return found

    def count(table):
        given = {"model_file": patients_model, "labelled": table, "state": state}
        return watch_module.watch_table(model, WatchOptions(**given), Listener())

    monkeypatch.setattr(watch_module, "_read_state", read_slowly)
    with ThreadPoolExecutor(3) as pool:
        rows = [done.facts["new_rows"] for done in pool.map(count, days)]
    content = json.loads(state.read_text())
    assert len(content["tables"]) == 3
    assert content["monitors"][0]["n_rows"] == sum(rows)


def test_a_day_is_counted_when_all_its_labels_are_in_and_later_ones_wait(watch, day):
    first, second = day(5), day(6)
    whole = first.read_text()
    lines = whole.splitlines()
    late = [
        line.removesuffix("well") if number % 3 else line
        for number, line in enumerate(lines)
    ]
    first.write_text("\n".join(late))
    said = watch(first, status=3)
    assert "have no label in 'state'. The table is held back" in said
    said = watch(second, status=3)
    assert f"{first}, which came before it, still lacks labels" in said
    # Rows that will never get a label can be left out.
    state = first.with_name("others.json")
    left = watch(first, "--state", state, "--skip-unlabelled")
    assert left["rows"] == sum(line.endswith("well") for line in late)
    first.write_text(whole)
    # Of a table without any label nothing counts, and later ones don't wait for it.
    nobody = first.with_name("nobody.csv")
    nobody.write_text("\n".join([lines[0], lines[1].removesuffix("well")]))
    assert watch(nobody, "--state", state, "--skip-unlabelled")["new_rows"] == 0
    told = watch(first)
    assert told["rows"] == sum(line.endswith("well") for line in lines)
    more = watch(second)
    assert more["rows"] == told["rows"] + more["new_rows"] > told["rows"]
