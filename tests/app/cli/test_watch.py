"""missratio watch, as cron would use it."""

import json

import pytest


@pytest.mark.needs("matplotlib")
def test_a_promise_kept_and_then_broken(run, fit, day):
    model, _ = fit()
    first, second = day(5), day(6, moved=15.0)
    kept = json.loads(run("watch", model, first, "--json").stdout)
    assert (kept["alarm"], kept["seen_before"]) == (False, False)
    again = json.loads(run("watch", model, first, "--json").stdout)
    assert again["seen_before"]
    assert again["rows"] == kept["rows"]
    figure = model.with_name("watch.png")
    result = run("watch", model, second, "--figure", figure, status=6)
    assert "ALARM" in result.stdout
    assert figure.read_bytes()[:4] == b"\x89PNG"


def test_the_state_of_another_model_is_refused(run, fit, day):
    model, _ = fit()
    other, _ = fit(out="other.skops", alpha=0.3)
    state = model.with_name("state.json")
    run("watch", model, day(5), "--state", state, "-q")
    before = state.read_bytes()
    result = run("watch", other, day(6), "--state", state, status=3)
    assert "about another model" in result.stderr
    assert state.read_bytes() == before
    state.write_text("{}")
    result = run("watch", model, day(6), "--state", state, status=3)
    assert "not what `missratio watch` writes" in result.stderr
    state.write_text(json.dumps({**json.loads(before), "format": 3}))
    result = run("watch", model, day(6), "--state", state, status=3)
    assert "written by another version" in result.stderr


def test_a_day_is_counted_when_all_its_labels_are_in_and_later_ones_wait(run, fit, day):
    model, _ = fit()
    first, second = day(5), day(6)
    whole = first.read_text()
    lines = whole.splitlines()
    late = [
        line.removesuffix("well") if number % 3 else line
        for number, line in enumerate(lines)
    ]
    first.write_text("\n".join(late))
    said = run("watch", model, first, status=3).stderr
    assert "have no label in 'state'. The table is held back" in said
    said = run("watch", model, second, status=3).stderr
    assert f"{first}, which came before it, still lacks labels" in said
    first.write_text(whole)
    told = json.loads(run("watch", model, first, "--json").stdout)
    assert told["rows"] == sum(line.endswith("well") for line in lines)
    more = json.loads(run("watch", model, second, "--json").stdout)
    assert more["rows"] == told["rows"] + more["new_rows"] > told["rows"]


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("counted_before", [True, False])
def test_a_figure_is_never_drawn_over_the_state(run, fit, day, counted_before):
    model, _ = fit()
    state = model.with_name("state.json")
    if counted_before:
        run("watch", model, day(5), "--state", state, "-q")
    before = state.read_bytes() if counted_before else None
    result = run("watch", model, day(6), "--state", state, "--figure", state, status=1)
    assert "never overwritten" in result.stderr
    assert (state.read_bytes() if state.exists() else None) == before


def test_a_day_without_rows_of_the_controlled_class_is_counted(run, fit, day):
    model, _ = fit()
    path = day(5)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.endswith("well")))
    told = json.loads(run("watch", model, path, "--json").stdout)
    assert (told["rows"], told["alarm"]) == (0, False)
    assert "No row has been seen yet" in run("watch", model, path).stdout
