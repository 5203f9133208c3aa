"""However tasks are shared out, interrupted and resumed, the numbers are the same."""

import json
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from data import Harm
from joblib.externals.loky.process_executor import TerminatedWorkerError
from pyarrow import parquet

from missratio.reproduce import EXPERIMENTS, Conditions, reproduce, runner
from missratio.reproduce.runner import Task, fill_in, plan

SIMULATED = [
    "msd_5dim", "np_boundary", "np_power", "naive_bayes", "diff_variance",
    "misspecification",
]  # fmt: skip


def run(out, jobs=1, runs=60, seed=0, names=("naive_bayes",), **listeners):
    """Results, and how many tasks had been finished before."""
    results, _ = plan(names, Conditions(seed=seed), runs=runs)
    return results, fill_in(results, out, jobs, **listeners)


def tables(results):
    return [result.as_parquet() for result in results]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All runs of an experiment, and the folder in which their tasks are kept."""
    folder = tmp_path_factory.mktemp("whole")
    ticks, told = [], {}
    (result,), resumed = run(folder, tick=ticks.append, step=told.__setitem__)
    assert (resumed, sum(ticks)) == (0, 60 * len(result.experiment.x))
    assert told == {"Running naive_bayes": sum(ticks)}
    return folder, result


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "runs"),
    [
        (("naive_bayes", "np_boundary"), 52),
        pytest.param(("ctg_vary_alpha",), 3, marks=pytest.mark.data),
    ],
)
def test_the_number_of_jobs_changes_nothing(tmp_path, names, runs):
    one = run(tmp_path / "one", jobs=1, runs=runs, names=names)[0]
    two = run(tmp_path / "two", jobs=2, runs=runs, names=names)[0]
    assert tables(one) == tables(two)


@pytest.mark.parametrize("runs", [range(50), range(57, 58), range(7)])
def test_a_point_or_run_alone_is_that_in_the_whole(whole, runs):
    experiment, values = whole[1].experiment, whole[1].values
    alone = experiment.measure(
        [experiment.x[3]], runs, experiment.methods, Conditions()
    )
    for method, one in zip(experiment.methods, alone, strict=True):
        expected = values[method][runs.start : runs.stop, 3]
        np.testing.assert_array_equal(one[:, 0], expected)


def test_what_was_finished_before_a_kill_is_not_computed_again(
    whole, tmp_path, monkeypatch
):
    seen = []

    def kill(size):
        seen.append(size)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, tick=kill)
    computed = []
    compute = runner.compute
    monkeypatch.setattr(
        runner, "compute", lambda task: computed.append(task) or compute(task)
    )
    results, resumed = run(tmp_path)
    assert tables(results) == tables([whole[1]])
    assert resumed == 5
    assert len(computed) == 20 - 5


def test_a_killed_worker_is_said_and_what_is_finished_is_kept(tmp_path, monkeypatch):
    compute, left = runner.compute, [3]

    def dying(task):
        if not left[0]:
            raise TerminatedWorkerError("killed")
        left[0] -= 1
        return compute(task)

    monkeypatch.setattr(runner, "compute", dying)
    with pytest.raises(ChildProcessError, match=r"killed.*--jobs.*is kept"):
        run(tmp_path)
    assert len(list(tmp_path.rglob("*.npz"))) == 3


def test_what_other_settings_or_code_left_behind_is_ignored(copy, whole, monkeypatch):
    results, resumed = run(copy)
    assert resumed == 20
    assert tables(results) == tables([whole[1]])
    results, resumed = run(copy, seed=1)
    assert resumed == 0
    assert tables(results) != tables([whole[1]])
    monkeypatch.setattr(runner, "code_digest", lambda: "other code")
    assert run(copy)[1] == 0


def test_other_code_is_another_result_and_how_it_is_shown_is_not(tmp_path, monkeypatch):
    for name in ("solver", "app"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").write_text("old")
    monkeypatch.setattr(runner, "files", lambda _: tmp_path)
    digest = runner.code_digest.__wrapped__
    before = digest()
    (tmp_path / "app" / "code.py").write_text("new")
    assert digest() == before
    (tmp_path / "solver" / "code.py").write_text("new")
    assert digest() != before


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: np.savez(path, others=np.zeros((3, 50, 1))),
        lambda path: np.savez(path, values=np.array([Harm(path.parent / "harm")])),
        lambda path: np.savez(path, values=np.zeros((3, 50, 2))),
        lambda path: np.savez(path, values=np.zeros((3, 50, 1), dtype="U8")),
        lambda path: np.savez(path, values=np.zeros((3, 50, 1), int)),
    ],
    ids=["empty", "truncated", "nameless", "code", "shape", "text", "integers"],
)
def test_a_file_that_cant_be_believed_is_computed_again(copy, whole, damage):
    shards = sorted(copy.rglob("*.npz"))
    (first,) = [p for p in shards if np.load(p)["values"].shape == (3, 50, 1)][:1]
    damage(first)
    results, resumed = run(copy)
    assert resumed == 19
    assert tables(results) == tables([whole[1]])
    assert not list(copy.rglob("harm"))


TASK = Task("naive_bayes", (0.1, 0.2), range(3), ("M-KLIEP", "CC-KLIEP"), Conditions())


def test_a_flipped_bit_of_a_shard_is_noticed_or_does_no_harm(tmp_path):
    rng = np.random.default_rng(0)
    kept = rng.normal(size=(2, 3, 2))
    TASK.save(tmp_path, kept)
    (path,) = tmp_path.rglob("*.npz")
    content, noticed = path.read_bytes(), 0
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        loaded = TASK.load(tmp_path)
        noticed += loaded is None
        if loaded is not None:
            np.testing.assert_array_equal(loaded, kept)
    assert noticed > 0


def test_a_task_depends_on_all_its_settings_and_its_data(tmp_path, monkeypatch):
    others = [
        replace(TASK, points=(0.2,)),
        replace(TASK, runs=range(5, 10)),
        replace(TASK, methods=("CC-KLIEP",)),
        replace(TASK, conditions=Conditions("corrected")),
        replace(TASK, conditions=Conditions(seed=1)),
    ]
    names = {each.file(tmp_path) for each in [TASK, *others]}
    kind = type(EXPERIMENTS["naive_bayes"])
    monkeypatch.setattr(kind, "fingerprint", lambda *_: "other data")
    assert len(names | {TASK.file(tmp_path)}) == 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    reproduce(out, SIMULATED, runs=3, command="missratio reproduce <all>")
    return out


@pytest.mark.parametrize("name", [*SIMULATED, "diff_variance_boundary"])
def test_every_experiment_has_its_figures_and_its_table(folder, name):
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")
    if name in SIMULATED:
        experiment, path = EXPERIMENTS[name], folder / f"{name}.parquet"
        table = parquet.read_table(path, page_checksum_verification=True)
        n_runs = 1 if name == "np_boundary" else 3
        assert table.num_rows == n_runs * len(experiment.x) * len(experiment.methods)
        assert table.column_names == ["x", "method", "run", "value"]


def test_files_are_the_same_every_time(folder, tmp_path):
    reproduce(tmp_path, ["naive_bayes"], runs=3)
    for kind in ("png", "svg", "parquet"):
        name = f"naive_bayes.{kind}"
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_the_summary_has_a_verdict_for_every_point_that_is_known(folder):
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert text.count("| overlap |") + text.count("| **apart** |") == 30 + 45 + 30
    assert "points (" in text
    assert "AISTATS 2023" in text
    assert "`missratio reproduce <all>`" in text
    assert text.count("![") == len(SIMULATED)
    record = json.loads((folder / "run.json").read_text())
    assert record["tasks_resumed"] == 0 < record["wall_seconds"] < 3600.0


def test_results_of_another_seed_are_not_replaced_unasked(tmp_path):
    ids = ["naive_bayes"]
    reproduce(tmp_path, ids, runs=1)
    before = (tmp_path / "results.json").read_bytes()
    for other in ({"seed": 1}, {"variant": "corrected"}):
        with pytest.raises(FileExistsError, match="would replace them"):
            reproduce(tmp_path, ids, runs=1, **other)
    assert (tmp_path / "results.json").read_bytes() == before
    reproduce(tmp_path, ids, runs=1)
    reproduce(tmp_path, ids, runs=1, seed=1, force=True)
    assert (tmp_path / "results.json").read_bytes() != before


def test_without_ids_what_lacks_its_data_is_left_out_with_a_reason(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MISSRATIO_DATA", str(tmp_path))
    results, skipped = plan([], Conditions())
    assert [result.experiment.id for result in results] == SIMULATED
    assert len(skipped) == 6
    with pytest.raises(FileNotFoundError, match="ctg_vary_alpha can't be run"):
        plan(["ctg_vary_alpha"], Conditions())
    made = reproduce(out := tmp_path / "a" / "b", methods=["Iterative imputation"])
    assert json.loads((out / "run.json").read_text())["skipped"] == made.skipped != {}


def test_curves_are_chosen_in_their_own_order():
    for methods in (["M-KLIEP", "CC-KLIEP"], ["CC-KLIEP", "M-KLIEP"]):
        (result,), _ = plan(["naive_bayes"], Conditions(), methods)
        assert list(result.values) == ["M-KLIEP", "CC-KLIEP"]
    (result,), _ = plan(["naive_bayes"], Conditions(), ["Joint M-KLIEP"])
    assert list(result.values) == ["Joint M-KLIEP"]


@pytest.mark.parametrize(
    ("ids", "methods", "variant", "message"),
    [
        (["np_pwer"], [], "published", r"'np_pwer'. Did you mean 'np_power'\?.*msd"),
        ([], ["M-KLEIP"], "published", "Did you mean 'M-KLIEP'"),
        (["np_power"], ["Iterative imputation"], "published", "np_power has none of"),
        ([], [], "fixed", "variant must be one of .'published'"),
    ],
)
def test_what_there_is_not_is_refused(ids, methods, variant, message):
    with pytest.raises(ValueError, match=message):
        plan(ids, Conditions(variant), methods)


def test_beyond_adds_curves_and_figures(tmp_path):
    made = reproduce(tmp_path, ["naive_bayes"], runs=1, beyond=True)
    curves = ["True ratio", "M-KLIEP", "CC-KLIEP", "Joint M-KLIEP"]
    assert list(made.results[0].values) == curves
    figures = sorted(path.stem for path in tmp_path.glob("*.png"))
    assert figures == ["naive_bayes", "naive_bayes_beyond"]
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").count("![") == 2


def test_without_matplotlib_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("missratio.reproduce.runner.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"missratio\[report\]"):
        reproduce(tmp_path, ["naive_bayes"])
    assert not list(tmp_path.iterdir())
