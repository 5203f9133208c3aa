"""Options: what contradicts itself is refused at once, before anything is read."""

import subprocess
import sys

import pytest
from commands import run

from missratio.app import options
from missratio.app.workflow.methods import METHODS
from missratio.threshold import RULES

FIT = ["fit", "t.csv", "--target", "y", "--out", "m.skops"]
ONE = [*FIT, "--controlled", "0"]
TWO = [*FIT, "--alpha", "sepsis=15%", "--alpha", "flu=20%"]
GROUPS = [*ONE, "--groups", "age"]
QUERY = ["query", "t.csv", "--target", "y", "--controlled", "0", "--out", "plan.csv"]
BETWEEN = "must lie between 0 and 1"
# The table and the model don't exist: nothing is read.
REFUSED = {
    (*ONE, "--alhpa", "0.1"): "No such option",
    (*ONE, "--alpha", "2"): f"{BETWEEN}, and be 1e-12 or more: got 2. Did you mean 2%",
    (*ONE, "--alpha", "500%"): BETWEEN,
    (*ONE, "--alpha", "'a lot'"): "--alpha: 'a lot' is not a share: write 0.05 or 5%",
    (*ONE, "--alpha", "1e-320"): BETWEEN,
    (*ONE, "--alpha", "nan"): BETWEEN,
    (*ONE, "--delta", "0"): f"'--delta': a share {BETWEEN}",
    (*ONE, "--delta", "small"): "write 0.05 or 5%",
    (*ONE, "--calibration-size", "nan"): BETWEEN,
    (*ONE, "--calibration-size", "200"): BETWEEN,
    (*ONE, "--compare-seconds", "-1"): "--compare-seconds must be",
    (*ONE, "--odds-factor", "nan"): "--odds-factor must be 1 or more",
    (*ONE, "--method", "tre"): "Did you mean 'trees'",
    (*ONE, "--rule", "bets"): "--rule must be one of",
    (*ONE, "--new-rows", "blank"): "Did you mean 'blanks'",
    (*ONE, "--header-row", "0"): "--header-row",
    (*ONE, "--missingness", "ignore", "--queries", "x"): "ignore and --queries don't",
    (*ONE, "--missingness", "a.toml", "--queries", "x"): "both say what blanks mean",
    (*ONE, "--new-rows", "blanks", "--missingness", "learn"): "no use for one",
    (*ONE, "--new-rows", "complete", "--missingness", "ignore"): "don't go together",
    (*ONE, "--ordered", "a,b"): "--ordered needs --alpha LABEL=SHARE",
    (*FIT,): "--alpha LABEL=SHARE for each of several",
    (*FIT, "--alpha", "5%", "--alpha", "6%"): "was given 2 times",
    (*FIT, "--alpha", "flu=5%", "--alpha", "6%"): "--alpha takes LABEL=SHARE",
    (*FIT, "--alpha", "flu=5%", "--alpha", "flu=6%"): "names each once",
    (*FIT, "--alpha", "flu=many"): "is not a share",
    (*FIT, "--alpha", "flu=5"): f"--alpha flu: a share {BETWEEN}",
    (*TWO, "--controlled", "flu"): "LABEL=SHARE and --controlled don't go together",
    (*TWO, "--versus", "rest"): "and --versus don't go together",
    (*TWO, "--queries", "plan.csv"): "in Python, fill look-ups in",
    (*TWO, "--on-infeasible", "reject_all"): "given to several classes",
    (*TWO, "--groups", "age"): "--groups and --alpha LABEL=SHARE don't go together",
    (*ONE, "--group-alpha", "old=5%"): "--group-alpha needs --groups: say which",
    (*GROUPS, "--group-alpha", "5%"): "--group-alpha takes GROUP=SHARE",
    (*GROUPS, "--group-alpha", "old=500%"): f"--group-alpha old: a share {BETWEEN}",
    (*QUERY, "--alpha", "5"): "Did you mean 5%",
    ("check", "t.csv", "--alpha", "5"): "Did you mean 5%",
    (*QUERY, "--budget", "9", "--per-feature", "9"): "both say how many",
    (*QUERY[:-1], "plan.parquet"): ".csv, .xlsx",
    ("predict", "m", "t.csv", "--out", "p.xls"): ".csv, .parquet, .xlsx",
    ("report", "m", "--out", "r.pdf"): ".html, .md, .json",
}


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words[-4:]))
def test_what_makes_no_sense_is_refused(words):
    said = run(*words, status=2).stderr.replace("│", " ")
    assert REFUSED[words] in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--queries", "absent.csv"), "no plan absent.csv"),
        (("--missingness", "absent.toml"), "There is no file absent.toml"),
        (("--out", "absent/m.skops"), "no folder absent"),
    ],
)
def test_files_that_are_not_there_are_said_first(words, message):
    assert message in " ".join(run(*ONE, *words, status=1).stderr.split())


def test_a_refused_option_loads_nothing_heavy():
    code = (
        "import sys; from missratio.app.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as leave: print(leave.code, 'numpy' in sys.modules)"
    )
    words = [sys.executable, "-c", code, *ONE, "--method", "tree"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2 False"
    assert "Did you mean 'trees'?" in done.stderr


def test_options_know_every_method_and_rule():
    assert set(options.METHODS) == set(METHODS)
    assert list(options.RULES) == list(RULES)


@pytest.mark.parametrize("text", ['drop = "id"', 'drop = ["id"]', "drop = 5"])
def test_one_column_in_settings_is_a_list_of_one(here, text):
    (here / "missratio.toml").write_text(text)
    given = options.with_settings({"drop": ["a"], "merge": []}, set())
    assert given["drop"] in (["id", "a"], ["5", "a"])


@pytest.mark.parametrize("text", ["\ufeffsheet = 2024", 'sheet = "2024"'])
def test_a_sheet_that_is_a_number_keeps_what_was_said_of_it(here, text):
    (here / "missratio.toml").write_text(f'{text}\ndrop = "id"', encoding="utf-8")
    given = {"drop": ["id"], "merge": [], "sheet": "2024"}
    assert options.with_settings(dict(given), {"drop", "sheet"}) == given


def test_settings_nested_without_end_are_refused(here):
    (here / "missratio.toml").write_text(f"{'.'.join('a' * 5000)} = 1")
    with pytest.raises(ValueError, match=r"a must be a text.*: got a nested dict"):
        options.read_settings()
