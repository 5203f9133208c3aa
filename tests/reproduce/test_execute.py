"""However tasks are shared out, interrupted and resumed, the numbers are the same."""

from dataclasses import replace

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from missratio._files import write_whole
from missratio.reproduce import EXPERIMENTS, Conditions
from missratio.reproduce import _execute as execute
from missratio.reproduce import _store as store
from missratio.reproduce._execute import Plan, Runner
from missratio.reproduce._store import Finished, Store, Task


def run(out, jobs=1, runs=60, seed=0, names=("naive_bayes",), tick=lambda *_: None):
    plans = [Plan(EXPERIMENTS[name], EXPERIMENTS[name].methods, runs) for name in names]
    runner = Runner(out, Conditions(seed=seed), jobs, tick)
    return runner, runner.run(plans)


def tables(results):
    return [result.as_parquet() for result in results]


def test_the_number_of_jobs_changes_nothing(tmp_path):
    names = ("naive_bayes", "misspecification", "np_boundary")
    one = run(tmp_path / "one", jobs=1, runs=55, names=names)[1]
    two = run(tmp_path / "two", jobs=2, runs=55, names=names)[1]
    assert tables(one) == tables(two)


def test_a_point_alone_is_the_point_in_the_whole(tmp_path):
    (whole,) = run(tmp_path)[1]
    experiment = EXPERIMENTS["naive_bayes"]
    alone = experiment.procedure.measure(
        [experiment.x[3]], range(50), experiment.methods, Conditions()
    )
    for method, values in alone.items():
        np.testing.assert_array_equal(values[:, 0], whole.values[method][:50, 3])


def test_a_run_alone_is_the_run_in_the_whole(tmp_path):
    (whole,) = run(tmp_path)[1]
    experiment = EXPERIMENTS["naive_bayes"]
    alone = experiment.procedure.measure(
        [experiment.x[3]], range(57, 58), experiment.methods, Conditions()
    )
    for method, values in alone.items():
        np.testing.assert_allclose(values[0], whole.values[method][57, 3:4], rtol=1e-7)


def test_fewer_runs_are_the_first_of_more(tmp_path):
    (more,) = run(tmp_path, runs=60)[1]
    (fewer,) = run(tmp_path, runs=7)[1]
    for method, values in fewer.values.items():
        np.testing.assert_allclose(values, more.values[method][:7], rtol=1e-7)


def test_another_seed_is_another_result(tmp_path):
    assert tables(run(tmp_path)[1]) != tables(run(tmp_path, seed=1)[1])


class Killed(BaseException):
    """What a kill looks like from within."""


def test_what_was_finished_before_a_kill_is_not_computed_again(tmp_path, monkeypatch):
    undisturbed = tables(run(tmp_path / "whole")[1])
    seen = []

    def kill(task, _):
        seen.append(task)
        if len(seen) == 5:
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path / "killed", tick=kill)
    computed = []
    compute = execute.compute
    monkeypatch.setattr(
        execute, "compute", lambda task: computed.append(task) or compute(task)
    )
    runner, results = run(tmp_path / "killed")
    assert tables(results) == undisturbed
    assert runner.resumed == 5
    assert len(computed) == 20 - 5


def test_what_other_settings_left_behind_is_ignored(tmp_path, monkeypatch):
    run(tmp_path)
    assert run(tmp_path)[0].resumed == 20
    assert run(tmp_path, seed=1)[0].resumed == 0
    monkeypatch.setattr("missratio.reproduce._store.code_digest", lambda: "other code")
    assert run(tmp_path)[0].resumed == 0


def test_a_damaged_file_is_computed_again(tmp_path):
    expected = tables(run(tmp_path)[1])
    damaged = sorted(tmp_path.rglob("*.npz"))[:3]
    damaged[0].write_bytes(b"")
    damaged[1].write_bytes(damaged[1].read_bytes()[:100])
    np.savez(damaged[2], values=np.zeros((1, 2, 3)), seconds=0.0)
    runner, results = run(tmp_path)
    assert runner.resumed == 17
    assert tables(results) == expected


def test_a_shard_of_another_task_is_not_believed(tmp_path):
    expected = tables(run(tmp_path)[1])
    one, other, *_ = sorted(tmp_path.rglob("*.npz"))
    one.write_bytes(other.read_bytes())
    runner, results = run(tmp_path)
    assert runner.resumed == 19
    assert tables(results) == expected


TASK = Task("naive_bayes", (0.1, 0.2), range(3), ("M-KLIEP", "CC-KLIEP"), Conditions())


@pytest.fixture
def stored(tmp_path):
    """A shelf with one finished task, and the file that it is in."""
    shelf, rng = Store(tmp_path), np.random.default_rng(0)
    values = {method: rng.normal(size=(3, 2)) for method in TASK.methods}
    shelf.save(TASK, "data", Finished(values, 1.5))
    (path,) = tmp_path.rglob("*.npz")
    return shelf, path, values


def test_what_is_kept_is_what_was_finished(stored):
    shelf, _, values = stored
    loaded = shelf.load(TASK, "data")
    assert loaded.seconds == 1.5
    assert list(loaded.values) == list(TASK.methods)
    for method, own in values.items():
        np.testing.assert_array_equal(loaded.values[method], own)
    assert shelf.load(TASK, "other data") is None


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_of_a_shard_is_noticed_or_does_no_harm(stored, bit):
    shelf, path, values = stored
    content = path.read_bytes()
    noticed = 0
    for place in range(bit, len(content), 8):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        loaded = shelf.load(TASK, "data")
        noticed += loaded is None
        for method, own in values.items() if loaded else ():
            np.testing.assert_array_equal(loaded.values[method], own)
    assert noticed > 0


@pytest.mark.parametrize(
    "values",
    [np.zeros((2, 3, 1)), np.zeros((2, 3, 2), dtype="U8"), np.zeros((2, 3, 2), int)],
    ids=["another shape", "text", "whole numbers"],
)
def test_numbers_of_another_kind_are_computed_again(stored, values):
    shelf, path, _ = stored
    np.savez(path, values=values, seconds=1.0, identity=TASK.identity("data"))
    assert shelf.load(TASK, "data") is None


@pytest.mark.parametrize("kills", [1, 2, 3])
def test_a_killed_worker_is_retried_and_then_said(tmp_path, monkeypatch, kills):
    pool, left = execute.Runner._pool, [kills]

    def dying(self, timed):
        def work(tasks):
            for number, each in enumerate(pool(self, timed)(tasks)):
                if number == 3 and left[0]:
                    left[0] -= 1
                    raise TerminatedWorkerError("killed")
                yield each

        return work

    monkeypatch.setattr(execute.Runner, "_pool", dying)
    if kills == 3:
        with pytest.raises(ChildProcessError, match=r"killed 3 times.*--jobs"):
            run(tmp_path)
        assert len(list(tmp_path.rglob("*.npz"))) >= 9
        return
    assert tables(run(tmp_path)[1]) == tables(run(tmp_path / "undisturbed")[1])


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "folder" / "file", b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_a_task_depends_on_all_its_settings():
    task = Task("naive_bayes", (0.1,), range(5), ("M-KLIEP",), Conditions())
    others = [
        replace(task, points=(0.2,)),
        replace(task, runs=range(5, 10)),
        replace(task, methods=("CC-KLIEP",)),
        replace(task, conditions=Conditions("corrected")),
        replace(task, conditions=Conditions(seed=1)),
    ]
    digests = {each.digest("") for each in [task, *others]} | {task.digest("data")}
    assert len(digests) == 7


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
    monkeypatch.setattr(execute.time, "monotonic", lambda: float(len(clock)))
    return experiment


def test_slow_methods_begin_no_run_after_their_time_and_points_advance_together(
    tmp_path, slow_experiment
):
    plan = Plan(slow_experiment, ("Iterative imputation",))
    (result,) = Runner(tmp_path, Conditions(), 1, lambda *_: None).run([plan])
    made = result.curves["Iterative imputation"].runs
    assert sum(made) in (9, 10)
    assert max(made) - min(made) <= 1


def test_with_runs_given_slow_methods_make_them_all(tmp_path, slow_experiment):
    plan = Plan(slow_experiment, ("Iterative imputation",), 20)
    (result,) = Runner(tmp_path, Conditions(), 1, lambda *_: None).run([plan])
    assert result.curves["Iterative imputation"].runs == (20, 20)


def test_curves_past_the_paper_have_their_own_number_of_runs():
    experiment = EXPERIMENTS["ctg_vary_alpha"]
    plan = Plan(experiment, experiment.curves)
    assert plan.n_runs("M-KLIEP (known)") == 1000
    assert plan.n_runs("Joint M-KLIEP (known)") == 200
    assert Plan(experiment, experiment.curves, 7).n_runs("Trees on NaN") == 7


def test_what_is_made_of_the_same_fits_is_one_task():
    experiment = EXPERIMENTS["ctg_vary_alpha"]
    power, error = "Joint M-KLIEP (known)", "Type I error: Joint M-KLIEP (known)"
    plan = Plan(experiment, (power, error), 3)
    assert [(t.methods, t.runs.start) for t in plan.tasks(Conditions())] == [
        ((power, error), run) for run in range(3)
    ]


def test_a_figure_of_one_run_stays_one_and_others_have_the_runs_asked_for():
    one = EXPERIMENTS["np_boundary"]
    assert one.runs == 1
    assert Plan(one, one.methods, 55).n_runs(one.methods[0]) == 1
    two = replace(EXPERIMENTS["naive_bayes"], runs=2)
    assert Plan(two, two.methods, 55).n_runs(two.methods[0]) == 55
    assert Plan(two, two.methods).n_runs(two.methods[0]) == 2


def test_every_run_at_every_point_is_told_of_once(tmp_path):
    told = []
    _, (result,) = run(tmp_path, tick=lambda _, n: told.append(n))
    x = EXPERIMENTS["naive_bayes"].x
    assert sum(told) == 60 * len(x)
    assert all(np.isfinite(own).all() for own in result.values.values())
    again = []
    run(tmp_path, tick=lambda _, n: again.append(n))
    assert sum(again) == sum(told)


def test_the_time_of_an_experiment_is_that_of_its_tasks(tmp_path):
    runner, (result,) = run(tmp_path)
    first = EXPERIMENTS["naive_bayes"].methods[0]
    assert result.seconds.keys() == {first}
    spent = sum(finished.seconds for finished in runner._finished.values())
    assert result.seconds[first] == pytest.approx(spent)
    assert spent > 0.0


@pytest.mark.parametrize(("jobs", "more"), [(1, 3), (2, 6)])
def test_time_that_was_spent_before_is_taken_off(
    tmp_path, slow_experiment, monkeypatch, jobs, more
):
    """Of nine seconds two tasks took three each, on so many processes."""
    alone = execute.Runner._pool
    monkeypatch.setattr(
        execute.Runner, "_pool", lambda self, timed: alone(replace(self, jobs=1), timed)
    )
    plan = Plan(slow_experiment, ("Iterative imputation",))
    before = plan.tasks(Conditions())[:2]
    for task in before:
        values = {"Iterative imputation": np.ones((1, len(task.points)))}
        Store(tmp_path).save(task, "", Finished(values, 3.0))
    runner = Runner(tmp_path, Conditions(), jobs, lambda *_: None)
    runner.run([plan])
    assert runner.resumed == 2
    assert len(clock) == more


def test_slow_methods_go_on_where_they_were_left(tmp_path, slow_experiment):
    plan = Plan(slow_experiment, ("Iterative imputation",))
    for _ in range(2):
        runner = Runner(tmp_path, Conditions(), 1, lambda *_: None)
        (result,) = runner.run([plan])
    assert runner.resumed == 9
    assert sum(result.curves["Iterative imputation"].runs) == 18


def test_other_code_is_another_result_and_how_it_is_shown_is_not(tmp_path, monkeypatch):
    for name in ("solver", "app"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").write_text("old")
    monkeypatch.setattr(store, "files", lambda _: tmp_path)
    digest = store.code_digest.__wrapped__
    before = digest()
    (tmp_path / "app" / "code.py").write_text("new")
    assert digest() == before
    (tmp_path / "solver" / "code.py").write_text("new")
    assert digest() != before


def test_nothing_that_a_shard_holds_is_run(stored, tmp_path):
    class Harm:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'harm')!r}, 'w').close()",))

    shelf, path, _ = stored
    np.savez(path, values=np.array([Harm()], dtype=object), seconds=1.0, identity="")
    assert shelf.load(TASK, "data") is None
    assert not (tmp_path / "harm").exists()


@pytest.mark.data
def test_the_number_of_jobs_changes_nothing_on_a_data_set(tmp_path):
    names = ("ctg_vary_alpha",)
    one = run(tmp_path / "one", jobs=1, runs=3, names=names)[1]
    two = run(tmp_path / "two", jobs=2, runs=3, names=names)[1]
    assert tables(one) == tables(two)
