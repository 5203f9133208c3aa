"""However tasks are shared out, interrupted and resumed, the numbers are the same."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from pyarrow import parquet

from missratio.reproduce import (
    EXPERIMENTS,
    Conditions,
    Options,
    chosen,
    reproduce,
    runner,
)
from missratio.reproduce.runner import Plan, Task, load_task, run_plans, save_task

SIMULATED = [
    "msd_5dim", "np_boundary", "np_power", "naive_bayes", "diff_variance",
    "misspecification",
]  # fmt: skip


def plan(name, runs=None, seed=0):
    experiment = EXPERIMENTS[name]
    return Plan(experiment, experiment.methods, Conditions(seed=seed), runs)


def run(out, jobs=1, runs=60, seed=0, names=("naive_bayes",), tick=lambda _: None):
    """Results, and how many tasks had been finished before."""
    return run_plans([plan(name, runs, seed) for name in names], out, jobs, tick)


def tables(results):
    return [result.as_parquet() for result in results]


def test_the_number_of_jobs_changes_nothing(tmp_path):
    names = ("naive_bayes", "misspecification", "np_boundary")
    one = run(tmp_path / "one", jobs=1, runs=55, names=names)[0]
    two = run(tmp_path / "two", jobs=2, runs=55, names=names)[0]
    assert tables(one) == tables(two)


def test_a_point_alone_is_the_point_in_the_whole(tmp_path):
    (whole,), _ = run(tmp_path)
    experiment = EXPERIMENTS["naive_bayes"]
    alone = experiment.procedure.measure(
        [experiment.x[3]], range(50), experiment.methods, Conditions()
    )
    for method, values in alone.items():
        np.testing.assert_array_equal(values[:, 0], whole.values[method][:50, 3])


def test_a_run_alone_is_the_run_in_the_whole(tmp_path):
    (whole,), _ = run(tmp_path)
    experiment = EXPERIMENTS["naive_bayes"]
    alone = experiment.procedure.measure(
        [experiment.x[3]], range(57, 58), experiment.methods, Conditions()
    )
    for method, values in alone.items():
        np.testing.assert_allclose(values[0], whole.values[method][57, 3:4], rtol=1e-7)


def test_fewer_runs_are_the_first_of_more(tmp_path):
    (more,), _ = run(tmp_path, runs=60)
    (fewer,), _ = run(tmp_path, runs=7)
    for method, values in fewer.values.items():
        np.testing.assert_allclose(values, more.values[method][:7], rtol=1e-7)


def test_another_seed_is_another_result(tmp_path):
    assert tables(run(tmp_path)[0]) != tables(run(tmp_path, seed=1)[0])


class Killed(BaseException):
    """What a kill looks like from within."""


def test_what_was_finished_before_a_kill_is_not_computed_again(tmp_path, monkeypatch):
    undisturbed = tables(run(tmp_path / "whole")[0])
    seen = []

    def kill(task):
        seen.append(task)
        if len(seen) == 5:
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path / "killed", tick=kill)
    computed = []
    compute = runner.compute
    monkeypatch.setattr(
        runner, "compute", lambda task: computed.append(task) or compute(task)
    )
    results, resumed = run(tmp_path / "killed")
    assert tables(results) == undisturbed
    assert resumed == 5
    assert len(computed) == 20 - 5


def test_what_other_settings_left_behind_is_ignored(tmp_path, monkeypatch):
    run(tmp_path)
    assert run(tmp_path)[1] == 20
    assert run(tmp_path, seed=1)[1] == 0
    monkeypatch.setattr("missratio.reproduce.runner.code_digest", lambda: "other code")
    assert run(tmp_path)[1] == 0


def test_a_damaged_file_is_computed_again(tmp_path):
    expected = tables(run(tmp_path)[0])
    damaged = sorted(tmp_path.rglob("*.npz"))[:3]
    damaged[0].write_bytes(b"")
    damaged[1].write_bytes(damaged[1].read_bytes()[:100])
    np.savez(damaged[2], values=np.zeros((1, 2, 3)), seconds=0.0)
    results, resumed = run(tmp_path)
    assert resumed == 17
    assert tables(results) == expected


def test_a_shard_of_another_task_is_not_believed(tmp_path):
    expected = tables(run(tmp_path)[0])
    one, other, *_ = sorted(tmp_path.rglob("*.npz"))
    one.write_bytes(other.read_bytes())
    results, resumed = run(tmp_path)
    assert resumed == 19
    assert tables(results) == expected


TASK = Task("naive_bayes", (0.1, 0.2), range(3), ("M-KLIEP", "CC-KLIEP"), Conditions())


@pytest.fixture
def stored(tmp_path):
    """A folder with one finished task, and the file that it is in."""
    rng = np.random.default_rng(0)
    values = {method: rng.normal(size=(3, 2)) for method in TASK.methods}
    save_task(tmp_path, TASK, "data", (values, 1.5))
    (path,) = tmp_path.rglob("*.npz")
    return tmp_path, path, values


def test_what_is_kept_is_what_was_finished(stored):
    folder, _, values = stored
    loaded, seconds = load_task(folder, TASK, "data")
    assert seconds == 1.5
    assert list(loaded) == list(TASK.methods)
    for method, own in values.items():
        np.testing.assert_array_equal(loaded[method], own)
    assert load_task(folder, TASK, "other data") is None


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_of_a_shard_is_noticed_or_does_no_harm(stored, bit):
    folder, path, values = stored
    content = path.read_bytes()
    noticed = 0
    for place in range(bit, len(content), 8):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        loaded = load_task(folder, TASK, "data")
        noticed += loaded is None
        for method, own in values.items() if loaded else ():
            np.testing.assert_array_equal(loaded[0][method], own)
    assert noticed > 0


@pytest.mark.parametrize(
    "values",
    [np.zeros((2, 3, 1)), np.zeros((2, 3, 2), dtype="U8"), np.zeros((2, 3, 2), int)],
    ids=["another shape", "text", "whole numbers"],
)
def test_numbers_of_another_kind_are_computed_again(stored, values):
    folder, path, _ = stored
    np.savez(path, values=values, seconds=1.0, identity=TASK.identity("data"))
    assert load_task(folder, TASK, "data") is None


@pytest.mark.parametrize("kills", [1, 2, 3])
def test_a_killed_worker_is_retried_and_then_said(tmp_path, monkeypatch, kills):
    pool, left = runner._pool, [kills]

    def dying(jobs, *, timed):
        def work(tasks):
            for number, each in enumerate(pool(jobs, timed=timed)(tasks)):
                if number == 3 and left[0]:
                    left[0] -= 1
                    raise TerminatedWorkerError("killed")
                yield each

        return work

    monkeypatch.setattr(runner, "_pool", dying)
    if kills == 3:
        with pytest.raises(ChildProcessError, match=r"killed 3 times.*--jobs"):
            run(tmp_path)
        assert len(list(tmp_path.rglob("*.npz"))) >= 9
        return
    assert tables(run(tmp_path)[0]) == tables(run(tmp_path / "undisturbed")[0])


def test_a_task_depends_on_all_its_settings():
    task = Task("naive_bayes", (0.1,), range(5), ("M-KLIEP",), Conditions())
    others = [
        replace(task, points=(0.2,)),
        replace(task, runs=range(5, 10)),
        replace(task, methods=("CC-KLIEP",)),
        replace(task, conditions=Conditions("corrected")),
        replace(task, conditions=Conditions(seed=1)),
    ]
    identities = {each.identity("") for each in [task, *others]}
    assert len(identities | {task.identity("data")}) == 7


class Slow:
    """A procedure that only counts, for methods with a time set aside."""

    def unavailable(self):
        return None

    def fingerprint(self, conditions):
        return ""

    def measure(self, points, runs, methods, conditions):
        clock.append(1.0)
        return {method: np.ones((len(runs), len(points))) for method in methods}


clock = []


@pytest.fixture
def slow_experiment(monkeypatch):
    clock.clear()
    experiment = replace(
        EXPERIMENTS["ctg_vary_missing"],
        procedure=Slow(),
        x=(0.1, 0.2),
        runs=50,
        slow_seconds=9.0,
    )
    monkeypatch.setitem(EXPERIMENTS, experiment.id, experiment)
    # Every measurement takes a second of this clock.
    monkeypatch.setattr(runner.time, "monotonic", lambda: float(len(clock)))
    return experiment


def slow(experiment, runs=None):
    return Plan(experiment, ("Iterative imputation",), Conditions(), runs)


def test_slow_methods_begin_no_run_after_their_time_and_points_advance_together(
    tmp_path, slow_experiment
):
    (result,), _ = run_plans([slow(slow_experiment)], tmp_path)
    made = result.curves["Iterative imputation"].runs
    assert sum(made) in (9, 10)
    assert max(made) - min(made) <= 1


def test_with_runs_given_slow_methods_make_them_all(tmp_path, slow_experiment):
    (result,), _ = run_plans([slow(slow_experiment, 20)], tmp_path)
    assert result.curves["Iterative imputation"].runs == (20, 20)


def test_how_many_runs_are_made():
    experiment = EXPERIMENTS["ctg_vary_alpha"]
    by_default = Plan(experiment, experiment.curves, Conditions())
    assert by_default.n_runs("M-KLIEP (known)") == 1000
    assert by_default.n_runs("Joint M-KLIEP (known)") == 200
    asked = Plan(experiment, experiment.curves, Conditions(), 7)
    assert asked.n_runs("Trees on NaN") == 7
    # A figure of one run stays one.
    assert plan("np_boundary", 55).n_runs("M-KLIEP") == 1


def test_what_is_made_of_the_same_fits_is_one_task():
    experiment = EXPERIMENTS["ctg_vary_alpha"]
    power, error = "Joint M-KLIEP (known)", "Type I error: Joint M-KLIEP (known)"
    tasks = Plan(experiment, (power, error), Conditions(), 3).tasks()
    assert [(task.methods, task.runs.start) for task in tasks] == [
        ((power, error), number) for number in range(3)
    ]


def test_every_run_at_every_point_is_told_of_once(tmp_path):
    told = []
    (result,), _ = run(tmp_path, tick=lambda task: told.append(task.size))
    x = EXPERIMENTS["naive_bayes"].x
    assert sum(told) == 60 * len(x)
    assert all(np.isfinite(own).all() for own in result.values.values())
    again = []
    run(tmp_path, tick=lambda task: again.append(task.size))
    assert sum(again) == sum(told)


def test_the_time_of_an_experiment_is_that_of_its_tasks(tmp_path):
    (result,), _ = run(tmp_path)
    first = EXPERIMENTS["naive_bayes"].methods[0]
    assert result.seconds.keys() == {first}
    spent = [
        load_task(tmp_path, task, "")[1] for task in plan("naive_bayes", 60).tasks()
    ]
    assert result.seconds[first] == pytest.approx(sum(spent))
    assert sum(spent) > 0.0


@pytest.mark.parametrize(("jobs", "more"), [(1, 3), (2, 6)])
def test_time_that_was_spent_before_is_taken_off(
    tmp_path, slow_experiment, monkeypatch, jobs, more
):
    """Of nine seconds two tasks took three each, on one process or on two."""
    alone = runner._pool
    monkeypatch.setattr(runner, "_pool", lambda _, timed: alone(1, timed=timed))
    before = slow(slow_experiment).tasks()[:2]
    for task in before:
        values = {"Iterative imputation": np.ones((1, len(task.points)))}
        save_task(tmp_path, task, "", (values, 3.0))
    _, resumed = run_plans([slow(slow_experiment)], tmp_path, jobs)
    assert resumed == 2
    assert len(clock) == more


def test_slow_methods_go_on_where_they_were_left(tmp_path, slow_experiment):
    for _ in range(2):
        (result,), resumed = run_plans([slow(slow_experiment)], tmp_path)
    assert resumed == 9
    assert sum(result.curves["Iterative imputation"].runs) == 18


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


def test_nothing_that_a_shard_holds_is_run(stored, tmp_path):
    class Harm:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'harm')!r}, 'w').close()",))

    folder, path, _ = stored
    np.savez(path, values=np.array([Harm()], dtype=object), seconds=1.0, identity="")
    assert load_task(folder, TASK, "data") is None
    assert not (tmp_path / "harm").exists()


@pytest.mark.data
def test_the_number_of_jobs_changes_nothing_on_a_data_set(tmp_path):
    names = ("ctg_vary_alpha",)
    one = run(tmp_path / "one", jobs=1, runs=3, names=names)[0]
    two = run(tmp_path / "two", jobs=2, runs=3, names=names)[0]
    assert tables(one) == tables(two)


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


def test_methods_choose_curves_and_without_leaves_some_out():
    plans, _ = Options(["np_power"], methods=["cc-kliep"]).plans()
    assert plans[0].methods == ("CC-KLIEP",)
    plans, _ = Options(["np_power"], without=["cc-kliep"]).plans()
    assert plans[0].methods == ("True ratio", "M-KLIEP")
    plans, _ = Options(["naive_bayes"], methods=["joint m-kliep"]).plans()
    assert plans[0].methods == ("Joint M-KLIEP",)


def test_choices_come_in_their_own_order_whatever_the_capitals():
    assert chosen(["b", "A"], ["a", "B"], "letter") == ["a", "B"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ids": ["np_pwer"]}, r"'np_pwer'. Did you mean 'np_power'\?.*msd"),
        ({"methods": ["M-KLEIP"]}, "Did you mean 'M-KLIEP'"),
        (
            {"ids": ["np_power"], "methods": ["Iterative imputation"]},
            "np_power has no curve left",
        ),
        (
            {
                "ids": ["np_power"],
                "without": ["True ratio", "M-KLIEP", "CC-KLIEP"],
            },
            "no curve left, by what was said of 'M-KLIEP'",
        ),
        ({"variant": "fixed"}, "variant must be one of 'published'"),
        ({"ids": ["naive_bayes_large"]}, r"naive_bayes_large .*--beyond"),
    ],
)
def test_what_there_is_not_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Options(**options).plans()


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


def test_an_experiment_past_the_paper_waits_to_be_asked_for():
    assert "naive_bayes_large" not in {p.experiment.id for p in Options().plans()[0]}


def test_without_matplotlib_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("missratio.reproduce.runner.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"missratio\[report\]"):
        reproduce(Options(["naive_bayes"]), tmp_path)
    assert not list(tmp_path.iterdir())
