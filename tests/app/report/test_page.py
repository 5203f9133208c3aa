"""The page as a person meets it: in a browser, with a keyboard, and on a phone."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr
from missratio.app.report import sections


def level_rows(data):
    return [row[:6] for row in sections.levels(data).table.rows]


DARK = ("prefers-color-scheme", "dark")


@pytest.fixture(scope="module")
def file(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture
def page(browser, file):
    """The page with its figures drawn, on a desktop."""
    assert browser.open(file)
    return browser


def readings(page):
    return page.run(
        "['alpha', 'threshold', 'bound', 'estimate', 'power', 'interval'].map("
        "k => document.getElementById('level-' + k).textContent)"
    )


def test_it_asks_for_nothing_and_complains_of_nothing(page, file):
    requests = page.events_of("Network.requestWillBeSent")
    assert [r["request"]["url"] for r in requests] == [file.as_uri()]
    assert not page.events_of("Runtime.exceptionThrown")
    assert not page.events_of("Log.entryAdded")
    assert not page.events_of("Runtime.consoleAPICalled")


def test_every_figure_is_drawn(page):
    drawn = page.run(
        "[...document.querySelectorAll('.chart')].map(c => [c.id, "
        "c.querySelectorAll('svg path').length, c.scrollWidth <= c.clientWidth + 1])"
    )
    assert len(drawn) >= 3
    for name, n_paths, fits in drawn:
        assert n_paths > 2, name
        assert fits, name
    assert page.run("window.hurt === undefined")
    assert page.run("document.querySelectorAll('b[onmouseover]').length") == 0


# The one point that is drawn in ink is the level chosen.
POINT = (
    "new Promise(r => setTimeout(() => r([...document.querySelectorAll("
    "'#figure-levels svg path[stroke=\"var(--ink)\"]')].map("
    "p => p.getAttribute('transform')).join()), 200))"
)


def test_arrow_keys_move_threshold_error_and_power_together(page, report):
    rows, own = level_rows(report.data), report.data["curve"]["own"]
    slider = "document.getElementById('alpha')"
    assert page.run(f"Number({slider}.value)") == own
    assert readings(page) == rows[own]
    before = page.run(POINT)
    assert "translate" in before
    page.run(f"{slider}.focus()")
    for key, times, place in (
        ("ArrowRight", 1, own + 1),
        ("ArrowRight", 2, own + 3),
        ("ArrowLeft", 5, own - 2),
        ("End", 1, -1),
        ("Home", 1, 0),
    ):
        page.press(key, times)
        assert readings(page) == rows[place]
        said = page.run(f"{slider}.getAttribute('aria-valuetext')")
        assert said == f"{rows[place][0]}, power {rows[place][4]}"
    assert page.run(POINT) != before
    back = "document.getElementById('back')"
    assert not page.run(f"{back}.disabled")
    page.run(f"{back}.click()")
    assert readings(page) == rows[own]
    assert page.run(f"{back}.disabled")


def test_it_follows_into_the_dark_and_onto_paper(browser, file):
    browser.open(file, features=[DARK])
    ground = "getComputedStyle(document.body).backgroundColor"
    line = (
        "getComputedStyle(document.querySelector("
        "'#figure-levels path[stroke=\"var(--other)\"]')).stroke"
    )
    dark = browser.run(ground), browser.run(line)
    browser.emulate(media="print")
    paper = browser.run(ground), browser.run(line)
    assert dark[0] == "rgb(22, 24, 27)"
    assert paper[0] == "rgb(255, 255, 255)"
    assert dark[1] != paper[1]
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == (
        "none"
    )


def test_without_scripts_the_numbers_are_there(browser, file):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.load(file)
        hidden = browser.run(
            "getComputedStyle(document.querySelector('.slider')).display"
        )
        rows = browser.run("document.querySelectorAll('#levels tbody tr').length")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
    assert hidden == "none"
    assert rows > 50


@pytest.fixture(scope="module")
def observed(html, tmp_path_factory):
    """A page with the widest table: of classes, and of rows with blanks and without."""
    rng, y = np.random.default_rng(0), np.repeat(["severe", "mild", "well"], 300)
    X = rng.normal(size=(900, 3)) + 2.0 * (y[:, None] == ["severe", "mild", "well"])
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    model = mr.MulticlassNeymanPearsonClassifier(
        HistGradientBoostingClassifier(max_iter=5), {"severe": 0.3, "mild": 0.4},
        deployment="as-observed", random_state=0,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("page") / "observed.html"
    report = mr.build_report(model.fit(X, y), X, y, folds=0)
    path.write_text(report.html(), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
@pytest.mark.parametrize("which", ["file", "observed"])
def test_nothing_is_wider_than_the_screen_and_no_table_is_cut_off(
    browser, width, which, request
):
    browser.open(request.getfixturevalue(which), width=width, height=800)
    assert browser.run("document.documentElement.scrollWidth") <= width
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    cut = browser.run(
        "[...document.querySelectorAll('.scroll')].filter("
        "s => s.scrollWidth > s.clientWidth + 1).map("
        "s => s.getAttribute('aria-label'))"
    )
    # On a tablet wide tables are scrolled.
    assert cut == [] or width == 768
