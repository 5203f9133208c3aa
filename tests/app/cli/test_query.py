"""missratio query, as a person would use it."""

import json

BASE = "--target state --controlled well --id id -q"


def test_a_larger_plan_of_the_same_seed_begins_with_the_smaller(
    run, patients, read_csv
):
    small, large = patients.with_name("small.csv"), patients.with_name("large.csv")
    run("query", patients, BASE, "--per-feature 5", "--out", small)
    run("query", patients, BASE, "--per-feature 9", "--out", large)
    keys = [{line["key"] for line in read_csv(plan)} for plan in (small, large)]
    assert keys[0] < keys[1]


def test_only_missing_cells_are_asked_for(run, patients, read_csv):
    plan = patients.with_name("plan.csv")
    run("query", patients, BASE, "--per-feature 20", "--out", plan)
    table = read_csv(patients)
    for line in read_csv(plan):
        row = table[int(line["line"]) - 2]
        assert row[line["feature"]] == ""
        assert row["id"] == line["id"]
        assert row["state"] == line["class"]


def test_a_complete_table_has_nothing_to_look_up(run, tmp_path):
    path, plan = tmp_path / "t.csv", tmp_path / "plan.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    words = ["query", path, "--target y --controlled 0", "--out", plan]
    assert "nothing to look up" in run(*words, status=3).stderr


def test_whole_rows(run, tmp_path, read_csv):
    path, plan = tmp_path / "t.csv", tmp_path / "plan.csv"
    rows = "".join(
        f"{i},{2 * i},{i % 2}\n" if i % 3 else f",,{i % 2}\n" for i in range(60)
    )
    path.write_text("a,b,y\n" + rows)
    words = "--target y --controlled 0 --rows --per-feature 2 --only-controlled --json"
    result = run("query", path, words, "--out", plan)
    assert json.loads(result.stdout)["queries"] == 4
    assert {line["class"] for line in read_csv(plan)} == {"0"}
