"""missratio query, as a person would use it."""

import csv
import json


def lines(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


BASE = ["--target", "state", "--controlled", "well", "--id", "id"]


def test_a_larger_plan_of_the_same_seed_begins_with_the_smaller(run, patients):
    small, large = patients.with_name("small.csv"), patients.with_name("large.csv")
    run("query", patients, *BASE, "--per-feature", 5, "--out", small, "-q")
    run("query", patients, *BASE, "--per-feature", 9, "--out", large, "-q")
    assert {line["key"] for line in lines(small)} < {x["key"] for x in lines(large)}


def test_only_missing_cells_are_asked_for(run, patients):
    plan = patients.with_name("plan.csv")
    run("query", patients, *BASE, "--per-feature", 20, "--out", plan, "-q")
    table = lines(patients)
    for line in lines(plan):
        row = table[int(line["line"]) - 2]
        assert row[line["feature"]] == ""
        assert row["id"] == line["id"]
        assert row["state"] == line["class"]


def test_plans_are_never_overwritten_unasked(run, patients):
    plan = patients.with_name("plan.csv")
    run("query", patients, *BASE, "--out", plan, "-q")
    before = plan.read_bytes()
    assert "--force" in run("query", patients, *BASE, "--out", plan, status=1).stderr
    assert plan.read_bytes() == before


def test_a_complete_table_has_nothing_to_look_up(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    result = run("query", path, "--target", "y", "--controlled", 0, "--out",
                 tmp_path / "plan.csv", status=3)  # fmt: skip
    assert "nothing to look up" in result.stderr


def test_whole_rows(run, tmp_path):
    path, plan = tmp_path / "t.csv", tmp_path / "plan.csv"
    rows = "".join(
        f"{i},{2 * i},{i % 2}\n" if i % 3 else f",,{i % 2}\n" for i in range(60)
    )
    path.write_text("a,b,y\n" + rows)
    arguments = ["query", path, "--target", "y", "--controlled", 0, "--out", plan]
    result = run(
        *arguments, "--rows", "--per-feature", 2, "--only-controlled", "--json"
    )
    assert json.loads(result.stdout)["queries"] == 4
    assert {line["class"] for line in lines(plan)} == {"0"}
