"""Files of a reproduction: tables, figures, a summary."""

import json
import xml.etree.ElementTree as ET

import pytest
from pyarrow import parquet

from missratio.reproduce import EXPERIMENTS, Options, reproduce

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
    with pytest.raises(ValueError, match="np_power has no curve among"):
        Options(["np_power"], methods=["Iterative imputation"]).plans()
    with pytest.raises(ValueError, match="Did you mean 'M-KLIEP'"):
        Options(methods=["M-KLEIP"]).plans()


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="variant must be one of 'published'"):
        Options(variant="fixed").plans()


def test_a_figure_of_one_run_stays_one():
    plans, _ = Options(["np_boundary"], runs=50).plans()
    assert plans[0].n_runs == 1


def test_without_matplotlib_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("missratio.reproduce._reproduce.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"missratio\[report\]"):
        reproduce(Options(["naive_bayes"]), tmp_path)
    assert not list(tmp_path.iterdir())
