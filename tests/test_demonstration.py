"""The demonstration runs, tells its story and leaves a figure."""

import contextlib
import io
import re
import sys

import demonstration as demo
import pytest


def run_quick(folder):
    """What one quick run returns, prints and leaves."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = demo.main(["--quick", "--out", str(folder / "new")])
    return status, out.getvalue(), err.getvalue(), folder / "new"


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return run_quick(tmp_path_factory.mktemp("demo"))


def figures(text):
    """Method -> power in per cent, in the order of the scenarios."""
    text = text.partition("The density ratio")[2]
    shares = {}
    for name, percent in re.findall(r"^  (\S.*?)  .* ([\d.]+) ± [\d.]+ %$", text, re.M):
        shares.setdefault(name, []).append(float(percent))
    return shares


def certificates(text):
    """Way to choose a threshold -> thresholds that break their promise, and power."""
    rows = re.findall(
        r"^  (\S.*?)  +[\d.]+ %  +(\d+) of (\d+)  +([\d.]+) ± [\d.]+ %$", text, re.M
    )
    return {name: (int(n) / int(of), float(power)) for name, n, of, power in rows}


def test_prints_a_row_for_each_method_and_saves_a_figure(quick):
    status, printed, _, folder = quick
    assert status == 0
    power = figures(printed)
    assert set(power) == {method.name for method in demo.METHODS}
    assert all(len(values) == len(demo.SCENARIOS) for values in power.values())
    assert set(certificates(printed)) == {way.name for way in demo.CALIBRATIONS}
    (picture,) = folder.iterdir()
    assert picture.name == "breast-cancer.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in printed
    # The promise comes first.
    assert printed.index("complete cases") < printed.index("CC-KLIEP")


def test_progress_goes_to_standard_error_and_reaches_the_end(quick):
    _, printed, progress, _ = quick
    total = demo.QUICK_REPEATS * (len(demo.SCENARIOS) + 1)
    assert progress.splitlines()[-1].endswith(f"{total} of {total}")
    assert f"of {total}" not in printed


def test_weights_recover_what_complete_cases_lose(quick):
    power = figures(quick[1])
    assert power["M-KLIEP"][0] > power["CC-KLIEP"][0] + 3.0
    assert power["M-KLIEP"][0] > power["naive Bayes M-KLIEP"][0] + 3.0
    assert power["KLIEP, nothing lost"][0] - power["M-KLIEP"][0] < 5.0


def test_complete_cases_break_the_promise_and_weights_keep_it(quick):
    results = certificates(quick[1])
    broken = {name: share for name, (share, _) in results.items()}
    power = {name: percent for name, (_, percent) in results.items()}
    assert broken["complete cases"] > 0.5
    assert broken["nothing lost"] <= demo.DELTA + 0.05
    assert broken["weights, auto rule"] <= demo.DELTA + 0.05
    assert broken["law known"] == 0.0
    assert power["weights, paper's rule"] == 0.0
    assert power["law known"] > power["nothing lost"] > power["weights, auto rule"] > 60


def test_says_what_to_install_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, printed, told, _ = run_quick(tmp_path)
    assert status == 1
    assert not printed
    assert "[report]" in told
    assert not list(tmp_path.iterdir())
