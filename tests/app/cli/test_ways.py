"""What missratio fit does about missing values, by what it is given."""

import json
import re
import shlex

import numpy as np
import pytest
from commands import fill_in, run, write_csv

import missratio as mr

FIT = "--target state --controlled ill --alpha 0.15 --drop id"
ASK = "--target state --controlled ill --alpha 0.15 --id id"
COLUMNS = ["a", "b", "c", "d", "e"]
REJECT = "--on-infeasible reject_all"


def draw(n, rng):
    """Rows whose columns tell of each other, and which of them are ill."""
    ill = np.arange(n) < n // 3
    common = rng.normal(size=(n, 1))
    values = 0.7 * common + rng.normal(size=(n, 5)) + 1.2 * ~ill[:, None]
    return values.round(4), ill


TRUTH = draw(900, np.random.default_rng(7))


def write(path, intercept, coef):
    """The rows as a table, after values went missing by these log-odds."""
    values, ill = TRUTH
    phi = mr.LogisticMissingness(intercept, coef)
    lossy = mr.corrupt(values, phi, np.random.default_rng(8))
    ids, state = [f"R{i}" for i in range(len(ill))], np.where(ill, "ill", "fit")
    rows = zip(ids, *lossy.T.tolist(), state, strict=True)
    return write_csv(path, "id,a,b,c,d,e,state", rows)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Four of five columns go missing where they are high, in both classes."""
    path = tmp_path_factory.mktemp("ways") / "table.csv"
    return write(path, [-1.5] * 4 + [-np.inf], [1.0] * 4 + [0.0])


def answer(path):
    """Fill in what a plan asks for."""
    values = TRUTH[0]
    return fill_in(
        path, lambda x: values[int(x["line"]) - 2, COLUMNS.index(x["feature"])]
    )


def fit(table, *options, status=0, asked=FIT):
    """Fit a table; the model and the facts, or what was said."""
    out = table.with_name("model.skops")
    words = ["fit", table, asked, "--force --json --compare-seconds 0", "--out", out]
    result = run(*words, *options, status=status)
    return result.stderr if status else (mr.load_model(out), json.loads(result.stdout))


def ask(table, options):
    """A plan, and what was said of it."""
    path = table.with_name(f"plan{options.count('-')}.csv")
    words = ["query", table, ASK, "--json --force", options]
    return path, json.loads(run(*words, "--out", path).stdout)


@pytest.fixture(scope="module")
def budget(table):
    """A plan of look-ups that the tool has drawn, to be filled in."""
    return ask(table, "--budget 200")


@pytest.fixture(scope="module")
def looked_up(table, budget):
    """A filled plan, the model of it and the facts."""
    plan = table.with_name("answered.csv")
    plan.write_text(budget[0].read_text())
    answer(plan)
    return plan, *fit(table, "--queries", plan)


def test_a_budget_of_look_ups_ends_in_a_certificate(table, budget, looked_up):
    plan, asked = budget
    assert asked["queries"] <= 200
    assert asked["rows"] > 40
    assert asked["single"] > 20
    assert [line["power"] for line in asked["power"]][-1] > 0.2
    told = fit(table, "--queries", plan, status=3)
    assert "Nothing of the controlled class 'ill' is filled in" in told
    assert "--missingness learn" in told
    _, model, facts = looked_up
    assert facts["way"] == "look-ups"
    assert "no model of φ" in facts["missingness"]
    assert f"{asked['single']} single values of 'fit'" in facts["missingness"]
    certificate = facts["certificate"]
    assert certificate["certified"]
    assert certificate["rule"] == "look-ups"
    assert certificate["looked_up"] > 0
    assert certificate["missingness_delta"] == 0
    fresh, ill = draw(20_000, np.random.default_rng(9))
    above = model.decide(fresh).codes
    assert above[ill].mean() < 0.15
    assert above[~ill].mean() > 0.2


def test_all_that_is_missing_is_a_plan_whose_command_runs(table):
    """A budget beyond it has the share of rows that there are, and no "…"."""
    plan = table.with_name("all.csv")
    said = run("query", table, ASK, "--budget 50000", "--out", plan).stdout
    rows, single = map(
        int, re.search(r"(\d+) values .* and (\d+) single", said).groups()
    )
    assert f"{rows / (rows + single):.0%} of the values go to rows" in said
    answer(plan)
    fitted = next(line for line in said.splitlines() if "missratio fit" in line)
    run(fitted, "--compare-seconds 0")
    # Rows with blanks count by what the model does with them.
    model = plan.with_suffix(".skops")
    watched = run("watch", model, table).stdout
    assert "No sign" in watched
    assert re.search(
        r"\d+ of the 300 new rows have blanks, and count as right", watched
    )


def test_a_table_that_teaches_nothing_says_why_and_what_to_run(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(np.arange(600)[:, None] % 2, 1.0, (600, 3))
    lossy = mr.corrupt(values, mr.LogisticMissingness([-1.0] * 3, [1.0] * 3), rng)
    rows = [[*row, "ab"[i % 2]] for i, row in enumerate(lossy.tolist())]
    table = write_csv(tmp_path / "t.csv", "x,y,z,state", rows)
    words = "--target state --controlled a --alpha 3% --missingness learn"
    out = tmp_path / "m.skops"
    told = run("fit", table, words, "--out", out, status=5).stderr
    assert "x: the other columns don't predict it" in told
    assert "The same is true of 'y', 'z'." in told
    assert "at delta=0.05: " in told
    assert "plan_queries" not in told
    command = next(line for line in told.splitlines() if "--new-rows blanks" in line)
    run(command, "--method indicators")


def test_a_plan_survives_a_code_for_missing_that_is_told_later(table, tmp_path):
    header, *lines = table.read_text().splitlines()
    for row in (3, 50, 700, 800):
        cells = lines[row].split(",")
        cells[5] = "999"
        lines[row] = ",".join(cells)
    coded = tmp_path / "coded.csv"
    coded.write_text("\n".join([header, *lines]))
    plan, _ = ask(coded, "--budget 200")
    answer(plan)
    _, facts = fit(coded, "--queries", plan, "--missing-value -1 --missing-value 999")
    assert facts["certificate"]["certified"]
    assert any("4 cells are missing that counted as" in w for w in facts["warnings"])
    words = ["--queries", plan, "--missing-value 999 --missingness learn"]
    assert "Draw another plan" in fit(coded, *words, status=3)
    # Other rows are another table still.
    coded.write_text("\n".join([header, *lines[1:]]))
    words = ["--queries", plan, "--missing-value 999"]
    assert "made for another table" in fit(coded, *words, status=3)


def test_single_values_are_data_for_the_score(table):
    plan, _ = ask(table, "--per-feature 40")
    lines = answer(plan)
    model, facts = fit(table, "--queries", plan, REJECT)
    # Four lossy columns: few rows of 'ill' are completed, so that φ certifies.
    assert facts["way"] == "both"
    assert "Look-ups are data: 160 single values of 'fit'" in facts["missingness"]
    assert "φ of 'ill' is learned from 160 looked-up values" in facts["missingness"]
    assert facts["certificate"]["missingness_delta"] > 0
    assert set(model.classifier.missingness) == {"ill"}
    # A column that nobody looked up is learned.
    text = plan.read_text().splitlines()
    asked = [not (x["class"] == "fit" and x["feature"] == "b") for x in lines]
    kept = [line for line, there in zip(text[1:], asked, strict=True) if there]
    plan.write_text("\n".join([text[0], *kept]))
    model, facts = fit(table, "--queries", plan, REJECT)
    assert "as no value of 'b' was looked up" in facts["missingness"]
    assert set(model.classifier.missingness) == {"ill", "fit"}


def test_the_table_teaches_phi_and_look_ups_add_to_it(table, looked_up):
    # Four lossy columns that teach each other leave too much open for 15%.
    wider = FIT.replace("0.15", "0.3")
    alone, facts = fit(table, "--missingness learn", REJECT, asked=wider)
    assert facts["way"] == "table"
    assert "learned from the table" in facts["missingness"]
    assert set(alone.classifier.missingness) == {"ill", "fit"}
    words = ["--missingness learn", REJECT, "--queries", looked_up[0]]
    both, facts = fit(table, *words)
    assert facts["way"] == "both"
    errors = [
        model.classifier.missingness["ill"].standard_errors[:4, 1].mean()
        for model in (alone, both)
    ]
    assert errors[1] < errors[0]
    # The report shows how wrong φ may be.
    data = json.loads(alone.report)
    assert data["missingness"]["classes"][0]["checks"]
    assert data["certificate"]["certified"]
    assert data["sensitivity"]["tipping_factor"] > 1.0


def test_given_nothing_a_model_is_for_rows_like_these(table, monkeypatch):
    """Blanks in rows to come are scored, and ways to more are commands that run."""
    monkeypatch.chdir(table.parent)
    out = table.with_name("nothing.skops")
    words = ["fit", table, FIT, "--method indicators", "--out", out]
    first, *said = run(*words).stdout.splitlines()
    assert "rows that lose values as these did" in first
    ways = [line.strip() for line in said if line.strip().startswith("missratio ")]
    look_up = said[said.index("    " + ways[0]) - 1]
    assert re.search(
        r"look up \d+ rows .* expected power .*; no assumption about φ", look_up
    )
    query, looked_up, learned = ways
    run(query)
    run(f"{learned} {REJECT} --compare-seconds 0")
    assert looked_up.endswith(f"--queries {table.with_name('plan.csv')}")
    values, ill = draw(2000, np.random.default_rng(10))
    values[:, 0] = np.nan
    assert mr.load_model(out).decide(values).codes[~ill].mean() > 0.1
    # To have said it is enough.
    said = run(*words, "--force --new-rows blanks").stdout
    assert "missratio fit" not in said
    # For complete rows to come, one of the ways must be taken.
    said = run(*words, "--force --new-rows complete", status=3).stderr
    assert "nothing says why" in said
    assert query in said


def test_without_missing_values_nothing_is_asked(tmp_path):
    whole = write(tmp_path / "t.csv", [-np.inf] * 5, [0.0] * 5)
    _, facts = fit(whole, "--method kliep")
    assert facts["missingness"] == "No value is missing."


def test_what_is_warned_of_does_not_stand_among_the_tests_again(tmp_path):
    """Columns that tell nothing of each other can't teach why they are missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 7))
    X[600:] += 1.5
    X[rng.random(X.shape) < 0.03] = np.nan
    rows = [[*row, "pq"[i // 600]] for i, row in enumerate(X.round(3).tolist())]
    table = write_csv(tmp_path / "t.csv", "a,b,c,d,e,f,g,y", rows)
    words = ["fit", table, "--target y --controlled p --alpha 20% --missingness learn"]
    out = tmp_path / "m.skops"
    said = run(*words, "--compare-seconds 0 --out", out).stdout.splitlines()
    (line,) = [line for line in said if "the other columns don't predict it" in line]
    assert line.startswith("Warning: 7 columns, the worst of them")


def test_sixty_columns_with_one_finding_are_one_line(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60)).round(3)
    X[rng.random(X.shape) < 0.03] = -999
    names = ",".join(f"c{j}" for j in range(60))
    rows = [[*row, "pq"[i % 2]] for i, row in enumerate(X.tolist())]
    table = write_csv(tmp_path / "t.csv", f"{names},y", rows)
    words = ["fit", table, "--target y --controlled p --compare-seconds 0"]
    words += ["--on-infeasible reject_all --out", tmp_path / "m.skops"]
    said = run(*words).stdout.splitlines()
    (warning,) = [line for line in said if "-999" in line]
    # Those that have most of them are named.
    first, second, third = np.argsort(-(X == -999).sum(axis=0), kind="stable")[:3]
    assert f"Column 'c{first}' is -999 in" in warning
    assert f"The same is true of 'c{second}', 'c{third}' and 57 more" in warning
    assert len(set(said)) == len(said)
    facts = json.loads(run(*words, "--force --json").stdout)
    assert sum("-999" in each for each in facts["warnings"]) == 60
    cautions = json.loads(mr.load_model(tmp_path / "m.skops").report)["cautions"]
    (caution,) = [each["text"] for each in cautions if "-999" in each["text"]]
    assert all(f"'c{j}'" in caution for j in range(60))


ASSUMED = "--target state --controlled ill --alpha 0.25 --drop id --method js"


@pytest.fixture(scope="module")
def one_column(tmp_path_factory):
    """One column goes missing where it is high, in both classes."""
    path = tmp_path_factory.mktemp("assumed") / "table.csv"
    return write(path, [-1.5] + [-np.inf] * 4, [1.0] + [0.0] * 4)


def test_what_an_expert_knows_is_a_range_of_phi(one_column, here):
    out = here / "model.skops"
    words = "--assume 'a: 30% of all, higher more likely' --json"
    found = json.loads(run("fit", one_column, ASSUMED, words, "--out", out).stdout)
    assert found["way"] == "assumed"
    assert "1.2 to 3 times as large (class 'fit', 'ill')" in found["missingness"]
    spread = found["range"]
    assert spread["whole"] <= min(spread["mildest"], spread["steepest"]) + 0.02
    text = json.dumps(found)
    assert "log-odds" not in text
    assert "LearnedMissingness" not in text
    # The same in a file.
    said = 'assume = ["a: 30% of all, higher more likely"]'
    (here / "missratio.toml").write_text(said, encoding="utf-8")
    again = run("fit", one_column, ASSUMED, "--json --out", here / "m")
    same = ("certificate", "missingness", "power")
    assert [json.loads(again.stdout)[key] for key in same] == [found[k] for k in same]


def test_an_end_of_the_range_that_the_table_contradicts_is_told(here):
    rng, y = np.random.default_rng(0), np.arange(2000) % 2
    Z = rng.normal(size=(2000, 3)) + rng.normal(size=(2000, 1)) + y[:, None]
    lost = rng.uniform(size=2000) < 1 / (1 + np.exp(3.0 - 2.0 * Z[:, 0]))
    Z[lost & (y == 0), 0] = np.nan
    write_csv(here / "t.csv", "a,b,c,y", zip(*Z.T.round(3), y, strict=True))
    words = "t.csv --target y --controlled 0 --alpha 0.2 --method js"
    wide = "--assume 'a: 18% of 0, higher 1 to 8 times more likely'"
    text = run("fit", words, wide, "--out", here / "m.skops").stdout
    assert "at its mildest, it would be unknown, as the table contradicts" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 30% of ill, higher", "can't be read"),
        ("A: 30% of ill", "no column 'A'. Did you mean 'a'?"),
        ("a: 30% of il", "no class 'il'. Did you mean 'ill'?"),
        ("a: 90% of all", "90% are stated to be missing, and the table has"),
        ("b: 30% of ill", "no value of 'ill' is missing in 'b'"),
        ("a: 30% of ill", "Class 'fit' has missing values in 'a'"),
    ],
)
def test_what_a_table_contradicts_is_refused(one_column, text, message, tmp_path):
    words = f"--assume {shlex.quote(text)} --out {tmp_path / 'm.skops'}"
    status = 2 if "read" in message else 3
    refused = run("fit", one_column, ASSUMED, words, status=status)
    assert message in " ".join(refused.stderr.split())
