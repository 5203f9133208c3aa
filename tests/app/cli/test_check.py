"""missratio check: what is odd about a table is found, settled, and remembered."""

import csv
import json
import tomllib

import numpy as np
import pytest
from commands import run, write_csv
from data import write_table

import missratio as mr

CHECK = "check t.csv --target state --controlled well"


@pytest.fixture
def clinic(here):
    """A table as a clinic has it, in a folder of its own, and the truth about it."""
    rng = np.random.default_rng(3)
    with (here / "t.csv").open("w", newline="", encoding="cp1252") as stream:
        stream.write("Klinik München;;;;;;;;\n;;;;;;;;\n")
        stream.write("patient;visit;HbA1c;crp;ward;region;site;copy;state\n")
        writer = csv.writer(stream, delimiter=";")
        for i in range(900):
            sick = rng.uniform() < 0.3
            sugar, crp = rng.normal(5.5 + 1.2 * sick, 0.8), np.exp(rng.normal(sick))
            cell = f"{sugar:.1f}".replace(".", ",")
            if rng.uniform() < 0.1 + 0.2 * (sugar > 6):
                cell = rng.choice(["", "999"], p=[0.9, 0.1])
            level = "<0,4" if crp < 0.4 else f"{crp:.2f}".replace(".", ",")
            region = rng.choice(["North", "South", "Nroth"], p=[0.5, 0.495, 0.005])
            label = ["well", "sick"][int(sick)]
            label = label.title() if rng.uniform() < 0.04 else label * (i > 2)
            date = f"{rng.integers(1, 28):02}.0{rng.integers(1, 9)}.2024"
            row = [f"P{i}", date, cell, level, rng.choice(["A", "B"]), region, "x"]
            writer.writerow([*row, level, label])
    return here


def settings(folder):
    return tomllib.loads((folder / "missratio.toml").read_text(encoding="utf-8"))


def test_a_messy_table_is_read_as_it_was_meant(clinic):
    said = run(f"{CHECK} --alpha 10%").stdout
    found = settings(clinic)
    assert (found["encoding"], found["header_row"]) == ("cp1252", 3)
    assert found["drop"] == ["patient", "visit", "site", "copy"]
    assert found["missing_value"] == ["999"]
    assert set(found["merge"]) == {"<0,4=0,2", "Well=well", "Sick=sick"}
    assert "'Nroth' in" in said
    # Each name stands once: what is undecided is a comment within the list.
    text = (clinic / "missratio.toml").read_text(encoding="utf-8")
    decided = tomllib.loads(text.replace('# "Nroth=North"', '"Nroth=North"'))
    assert decided["merge"] == [*found["merge"], "Nroth=North"]
    assert "2 row(s) without a label were left out." in said
    assert "Will new rows have blanks like these, or will they be complete?" in said
    assert "as they come: expected power" in said
    assert "if new rows have blanks like these" in said


def test_commands_are_short_once_a_table_was_checked(clinic):
    run(f"{CHECK} --alpha 10%")
    said = run("check").stdout
    assert "missratio.toml is there already" in said
    command = next(x for x in said.splitlines() if "missratio query" in x)
    assert len(command.split()) <= 10
    run(command)
    # A list adds to the file's.
    fit = "fit --new-rows blanks --method indicators --merge Nroth=North --out m.skops"
    run(fit)
    model = mr.load_model(clinic / "m.skops")
    assert model.encoder.names == ["HbA1c", "crp", "ward", "region"]
    assert set(model.encoder.columns[-1].levels) == {"North", "South"}
    assert set(model.training.rows) == {"well", "sick"}
    # New rows are read in the same way, but for files of another kind.
    run("predict m.skops t.csv --keep patient --out p.csv")
    texts = {"HbA1c": "7,1", "crp": "0,9", "ward": "A", "region": "North"}
    lines = ["\t".join(texts), "\t".join(texts.values())]
    (clinic / "t.tsv").write_text("\n".join(lines), encoding="utf-8")
    run("predict m.skops t.tsv --out q.csv")


def test_a_later_check_adds_to_the_lists_of_the_file(clinic):
    run(f"{CHECK} --drop ward")
    dropped = settings(clinic)["drop"]
    for _ in range(2):
        said = run("check --drop crp --merge Nroth=North").stdout
        assert set(settings(clinic)["drop"]) == {"crp", *dropped}
        assert "Nroth=North" in settings(clinic)["merge"]
    assert "stays as it is" in said


def test_what_a_person_has_to_say_is_asked_and_answers_are_added(clinic):
    said = run("check t.csv").stdout
    assert "Which column holds the labels? It may be 'state'." in said
    before = (clinic / "missratio.toml").read_text(encoding="utf-8")
    said = run("check --target state --controlled well").stdout
    assert "Added to missratio.toml: target, controlled, skip_unlabelled." in said
    after = (clinic / "missratio.toml").read_text(encoding="utf-8")
    assert after.startswith(before)
    assert settings(clinic)["controlled"] == "well"
    command = next(x for x in said.splitlines() if "missratio fit" in x)
    assert command == "    missratio fit --new-rows blanks"
    run(command, "--method indicators")
    (clinic / "missratio.toml").unlink()
    run("check t.csv --target state")
    assert "controlled" not in settings(clinic)
    facts = json.loads(run("check t.csv --target state --json").stdout)
    assert any("whose error is bounded" in each for each in facts["questions"])
    assert facts["blanks"]["rows"].keys() == {"well", "sick"}


def test_blank_categories_are_counted_and_tables_without_blanks_are_told(here):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)).round(3), np.arange(300) % 2
    X[y == 1] += 2.0
    for blank in ("", "c"):
        third = ["a" if i % 3 else blank if i % 2 else "b" for i in range(300)]
        rows = zip(*X.T.tolist(), third, y.tolist(), strict=True)
        write_csv(here / "t.csv", "u,v,c,y", rows)
        said = run("check t.csv --target y --controlled 0 --force").stdout
        told = "if new rows have blanks like these"
        lost = "'1': 150 rows, 100 of them complete; blanks in 'c' 33%." in said
        if blank:
            told = "if new rows are complete, as these are"
        assert "as they come: expected power" in said
        assert told in said
        assert lost == (not blank)


@pytest.mark.needs("xlsxwriter")
def test_a_sheet_that_has_a_table_is_found(here):
    rows = [["x", "y"], *([i % 7, i % 2] for i in range(40))]
    write_table(here / "t.xlsx", {"Notes": [["Study 12"]], "Data": rows})
    said = run("check", "t.xlsx", "--target", "y").stdout
    assert "Sheet 'Data' is read: those before it have no table." in said
    assert settings(here)["sheet"] == "Data"
    said = run("check", "t.xlsx", "--target", "z", status=3).stderr
    assert "--target 'z' is not a column of t.xlsx" in said


@pytest.mark.needs("xlsxwriter")
def test_what_was_read_of_another_sheet_is_read_anew(here):
    legend = [["a", "b"], *([i % 7, i % 2] for i in range(90))]
    rows = [["x", "y", "z"], *([i % 7, i % 2, i % 5] for i in range(90))]
    write_table(here / "t.xlsx", {"Legend": legend, "Data": rows})
    run("check t.xlsx --drop b")
    assert settings(here) == {"data": "t.xlsx", "sheet": "Legend", "drop": ["b"]}
    run("check --sheet Data --target y --controlled 0")
    assert settings(here)["sheet"] == "Data"
    assert "drop" not in settings(here)
    run("fit --on-infeasible reject_all")


def test_a_later_check_changes_what_is_said_otherwise(clinic):
    run(f"{CHECK} --alpha 10%")
    said = run("check --alpha 5%").stdout
    assert "Added to missratio.toml: alpha. What else it says stays" in said
    assert settings(clinic)["alpha"] == "5%"
    assert "    missratio fit --new-rows blanks\n" in said
    assert "Left out, as missratio.toml or --drop says: 'patient', 'visit'" in said


def test_several_labels_are_asked_about(here):
    rng = np.random.default_rng(0)
    values = rng.normal(np.arange(600) % 3 * 9.0)
    rows = [(f"{x:.2f}", f"{x:.1f} m", "abc"[i % 3]) for i, x in enumerate(values)]
    write_csv(here / "t.csv", "x,depth,y", rows)
    said = run("check t.csv --target y --controlled a").stdout
    assert "Against which of the other labels?" in said
    assert "numbers with a unit, such as" in said
    assert "(take ' m' away in the file to use them as numbers)" in said
    # What is said of one class is no obstacle to bounds on several.
    bounds = "--drop depth --alpha a=20% --alpha c=20% --compare-seconds 0"
    run(f"fit {bounds}")


def test_the_page_says_the_same(clinic):
    run(f"{CHECK} --out look.md")
    page = (clinic / "look.md").read_text(encoding="utf-8")
    for words in ("To decide", "What was done", "Blanks by class", "could be promised"):
        assert words in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targt = 'state'", "'targt', which is no option. Did you mean 'target'"),
        ("target = ", "not a TOML file"),
        ("drop = " + "[" * 2000 + "]" * 2000, "not a TOML file"),
        ("drop = { a = 1 }", "drop must be a text, a number"),
        ("alpha = [[1]]", "alpha must be a text, a number"),
    ],
)
def test_a_settings_file_that_says_nothing_known_is_refused(clinic, text, message):
    (clinic / "missratio.toml").write_text(text, encoding="utf-8")
    result = run("fit t.csv --out m.skops", status=2)
    assert message in result.output


def test_a_code_that_is_a_value_elsewhere_is_left_to_a_person(here):
    rows = [[i % 7 if i % 20 else 999, 900 + i % 120, i % 2] for i in range(400)]
    write_csv(here / "t.csv", "a,b,y", rows)
    said = run("check t.csv --target y").stdout
    assert "is it missing? If so, add --missing-value 999 (then in 'b' as well)" in said
    assert "counts as missing" not in said
    assert "missing_value" not in settings(here)
    assert 'missing_value = ["999"]' in (here / "missratio.toml").read_text()


def test_copies_of_rows_are_told_of_and_what_to_do_about_them(here):
    X = np.random.default_rng(0).normal(size=(300, 2))
    rows = [(x, z, i % 2, f"{i} €") for i, (x, z) in enumerate(X.tolist())]
    write_csv(here / "t.csv", "x,z,y,price", [*rows, *rows[:150]])
    said = run("check t.csv --target y --controlled 0").stdout
    assert "- 150 rows repeat another in every column." in said
    assert "numbers with a unit, such as" in said
    said = " ".join(run("fit --method js --alpha 20%").stdout.split())
    assert "does not hold. Take copies out of the table. Written" in said
    write_csv(here / "u.csv", "x,z,y,price", rows)
    assert "repeat another" not in run("check u.csv --target y --force").stdout
    # The target stays, which missratio.toml names.
    said = run("check u.csv --drop x,z,y").stdout
    assert "--drop says: 'price', 'x', 'z'." in said


def test_what_is_known_of_three_columns_can_be_said_in_words(here):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 4)).round(3), np.arange(600) % 2
    X[:, :3][rng.uniform(size=(600, 3)) < 0.05] = np.nan
    write_csv(here / "t.csv", "a,b,c,d,y", zip(*X.T, y, strict=True))
    said = run("check t.csv --target y --controlled 0").stdout
    (command,) = [line for line in said.splitlines() if "--assume '" in line]
    assert command.count("--assume") == 6


def test_a_line_of_units_below_the_header_is_left_out(here):
    rows = [(i % 60 or -1, i % 50, "AB"[i % 2], i % 3 % 2) for i in range(300)]
    lines = [("°C", "mm/s", "", ""), *rows[:9], ("3o", 1, "A", 1), *rows[9:]]
    write_csv(here / "t.csv", "a,b,c,y", lines)
    said = run("check t.csv --target y --controlled 0").stdout
    assert "'°C' in 1 cells: it counts as missing." in said
    assert "'3o' in 1 cells: is it missing? If so, add --missing-value 3o." in said
    assert "'a' is -1 in 5 rows, and nowhere else below 0: is it missing?" in said
    run("fit --missing-value 3o --compare-seconds 0 --on-infeasible reject_all")
    assert mr.load_model("model.skops").training.rows == {0: 200, 1: 101}
