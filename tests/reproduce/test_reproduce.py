"""Files of a reproduction: tables, figures, a summary."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet

from missratio.reproduce import (
    EXPERIMENTS,
    Conditions,
    Options,
    Result,
    reproduce,
)
from missratio.reproduce._figures import parts

SIMULATED = [
    "msd_5dim", "np_boundary", "np_power", "naive_bayes", "diff_variance",
    "misspecification",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    reproduce(Options(SIMULATED, runs=3), out, command="missratio reproduce <all>")
    return out


@pytest.mark.parametrize("name", [*SIMULATED, "diff_variance_boundary"])
def test_every_experiment_has_its_figures(folder, name):
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    root = ET.parse(folder / f"{name}.svg").getroot()
    assert root.tag.endswith("svg")


@pytest.mark.parametrize("name", SIMULATED)
def test_every_experiment_has_its_table(folder, name):
    experiment = EXPERIMENTS[name]
    table = parquet.read_table(
        folder / f"{name}.parquet", page_checksum_verification=True
    )
    n_runs = 1 if name == "np_boundary" else 3
    assert table.num_rows == n_runs * len(experiment.x) * len(experiment.methods)
    assert table.column_names == ["x", "method", "run", "value"]


def test_figures_are_the_same_every_time(folder, tmp_path):
    reproduce(Options(["naive_bayes"], runs=3), tmp_path)
    for kind in ("png", "svg", "parquet"):
        name = f"naive_bayes.{kind}"
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_the_summary_has_a_verdict_for_every_point_that_is_known(folder):
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert text.count("| overlap |") + text.count("| apart |") == 30 + 45 + 30
    assert "points (" in text
    assert "Where the time went" in text
    page = (folder / "summary.html").read_text(encoding="utf-8")
    assert "missratio reproduce &lt;all&gt;" in page
    assert page.count("<img") == len(SIMULATED)


def test_results_of_another_seed_are_not_replaced_unasked(tmp_path):
    options = Options(["naive_bayes"], runs=1)
    reproduce(options, tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    for other in (replace(options, seed=1), replace(options, variant="corrected")):
        with pytest.raises(FileExistsError, match="would replace them"):
            reproduce(other, tmp_path)
    assert (tmp_path / "results.json").read_bytes() == before
    reproduce(options, tmp_path)
    reproduce(replace(options, seed=1), tmp_path, force=True)
    assert (tmp_path / "results.json").read_bytes() != before


def test_the_record_says_what_was_run(folder):
    record = json.loads((folder / "run.json").read_text())
    assert set(record["seconds"]) == set(SIMULATED)
    assert record["tasks_resumed"] == 0


def test_without_ids_what_lacks_its_data_is_left_out_with_a_reason(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MISSRATIO_DATA", str(tmp_path))
    plans, skipped = Options().plans()
    assert [plan.experiment.id for plan in plans] == SIMULATED
    assert len(skipped) == 6
    with pytest.raises(FileNotFoundError, match="ctg_vary_alpha can't be run"):
        Options(["ctg_vary_alpha"]).plans()


def test_methods_choose_curves(tmp_path):
    plans, _ = Options(["np_power"], methods=["cc-kliep"]).plans()
    assert plans[0].methods == ("CC-KLIEP",)
    with pytest.raises(ValueError, match="np_power has no curve left"):
        Options(["np_power"], methods=["Iterative imputation"]).plans()
    with pytest.raises(ValueError, match="Did you mean 'M-KLIEP'"):
        Options(methods=["M-KLEIP"]).plans()


def test_curves_may_be_left_out_and_their_errors_with_them():
    plans, _ = Options(["np_power"], without=["cc-kliep"]).plans()
    assert plans[0].methods == ("True ratio", "M-KLIEP")
    with pytest.raises(
        ValueError, match="no curve left, by what was said of 'M-KLIEP'"
    ):
        Options(["np_power"], without=["True ratio", "M-KLIEP", "CC-KLIEP"]).plans()


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="variant must be one of 'published'"):
        Options(variant="fixed").plans()


def test_a_figure_of_one_run_stays_one():
    plans, _ = Options(["np_boundary"], runs=50).plans()
    assert plans[0].n_runs("M-KLIEP") == 1


def test_beyond_adds_curves_and_figures(tmp_path):
    made = reproduce(
        Options(["naive_bayes", "naive_bayes_large"], runs=2, beyond=True), tmp_path
    )
    small, large = made.results
    assert list(small.values) == ["True ratio", "M-KLIEP", "CC-KLIEP", "Joint M-KLIEP"]
    assert list(large.values) == list(small.values)
    figures = sorted(path.stem for path in tmp_path.glob("*.png"))
    assert figures == ["naive_bayes", "naive_bayes_beyond", "naive_bayes_large"]
    page = (tmp_path / "summary.html").read_text(encoding="utf-8")
    assert page.count("<img") == 3


def test_a_curve_past_the_paper_may_be_named_instead():
    plans, _ = Options(["naive_bayes"], methods=["joint m-kliep"]).plans()
    assert plans[0].methods == ("Joint M-KLIEP",)


def test_an_experiment_past_the_paper_waits_to_be_asked_for():
    assert "naive_bayes_large" not in {p.experiment.id for p in Options().plans()[0]}
    with pytest.raises(ValueError, match=r"naive_bayes_large .*--beyond"):
        Options(["naive_bayes_large"]).plans()


def test_errors_are_drawn_apart_and_under_their_own_name():
    experiment = EXPERIMENTS["ctg_vary_alpha"]
    values = {method: np.full((2, 6), 0.5) for method in experiment.curves}
    made = parts(Result(experiment, Conditions(), values, {}))
    assert list(made) == [
        f"ctg_vary_alpha{end}" for end in ("", "_beyond", "_type_one")
    ]
    assert tuple(made["ctg_vary_alpha"].values) == experiment.methods
    assert made["ctg_vary_alpha_type_one"].experiment.y_name == "Type I error"


def test_without_matplotlib_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("missratio.reproduce._reproduce.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"missratio\[report\]"):
        reproduce(Options(["naive_bayes"]), tmp_path)
    assert not list(tmp_path.iterdir())
