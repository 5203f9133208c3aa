"""The demonstration runs, tells its story and leaves a figure."""

import re
import sys

import demonstration as demo
import numpy as np
import pytest


def run_quick(capsys, *arguments):
    status = demo.main(["--quick", *arguments])
    return status, capsys.readouterr()


def figures(text):
    """Method -> power in per cent, in the order of the scenarios."""
    text = text.partition("A certificate:")[0]
    found = {}
    for name, percent in re.findall(r"^  (\S.*?)  .* ([\d.]+) ± [\d.]+ %$", text, re.M):
        found.setdefault(name, []).append(float(percent))
    return found


def certificates(text):
    """Way to choose a threshold -> thresholds that break their promise, and power."""
    rows = re.findall(
        r"^  (\S.*?)  +[\d.]+ %  +(\d+) of (\d+)  +([\d.]+) ± [\d.]+ %$", text, re.M
    )
    return {name: (int(n) / int(of), float(power)) for name, n, of, power in rows}


def test_prints_a_row_for_each_method_and_saves_a_figure(tmp_path, capsys):
    status, printed = run_quick(capsys, "--out", str(tmp_path / "new"))
    assert status == 0
    power = figures(printed.out)
    assert set(power) == {method.name for method in demo.METHODS}
    assert all(len(values) == len(demo.SCENARIOS) for values in power.values())
    assert set(certificates(printed.out)) == {way.name for way in demo.CALIBRATIONS}
    saved = list((tmp_path / "new").iterdir())
    assert [path.name for path in saved] == ["breast-cancer.png"]
    assert saved[0].read_bytes().startswith(b"\x89PNG")
    assert str(saved[0]) in printed.out


def test_progress_goes_to_standard_error_and_reaches_the_end(tmp_path, capsys):
    _, printed = run_quick(capsys, "--out", str(tmp_path))
    total = demo.QUICK_REPEATS * (len(demo.SCENARIOS) + 1)
    assert printed.err.splitlines()[-1].endswith(f"{total} of {total}")
    assert f"of {total}" not in printed.out


def test_weights_recover_what_complete_cases_lose(tmp_path, capsys):
    _, printed = run_quick(capsys, "--out", str(tmp_path))
    power = figures(printed.out)
    assert power["M-KLIEP"][0] > power["CC-KLIEP"][0] + 3.0
    assert power["M-KLIEP"][0] > power["naive Bayes M-KLIEP"][0] + 3.0
    assert power["KLIEP, nothing lost"][0] - power["M-KLIEP"][0] < 5.0


def test_complete_cases_break_the_promise_and_weights_keep_it(tmp_path, capsys):
    _, printed = run_quick(capsys, "--out", str(tmp_path))
    found = certificates(printed.out)
    broken = {name: share for name, (share, _) in found.items()}
    power = {name: percent for name, (_, percent) in found.items()}
    assert broken["complete cases"] > 0.5
    assert broken["nothing lost"] <= demo.DELTA + 0.05
    assert broken["weights, auto rule"] <= demo.DELTA + 0.05
    assert broken["law known"] == 0.0
    assert power["weights, paper's rule"] == 0.0
    assert power["law known"] > power["nothing lost"] > power["weights, auto rule"] > 60


def test_a_seed_gives_the_same_output_and_another_seed_another(tmp_path, capsys):
    arguments = ("--out", str(tmp_path))
    _, first = run_quick(capsys, *arguments)
    picture = (tmp_path / "breast-cancer.png").read_bytes()
    _, again = run_quick(capsys, *arguments, "--seed", "0")
    assert again.out == first.out
    assert (tmp_path / "breast-cancer.png").read_bytes() == picture
    _, other = run_quick(capsys, *arguments, "--seed", "1")
    assert other.out != first.out


def test_power_leaves_at_most_alpha_of_class_0_above_the_threshold():
    y = np.repeat([0, 1], [20, 4])
    score = np.concatenate([np.arange(20.0), [16.5, 17.0, 17.5, 30.0]])
    # Two of twenty, 18 and 19, may exceed the threshold, which is then 17.
    assert demo.power(score, y) == 0.5


def test_refuses_a_negative_seed(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--seed", "-1"])
    assert "--seed" in capsys.readouterr().err


def test_says_what_to_install_where_matplotlib_is_missing(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, printed = run_quick(capsys, "--out", str(tmp_path))
    assert status == 1
    assert "CC-KLIEP" in printed.out
    assert "[report]" in printed.err
    assert not list(tmp_path.iterdir())
