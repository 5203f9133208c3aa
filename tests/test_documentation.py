"""What the README and the pages of the documentation show is what their code gives."""

import doctest
import importlib
import re
from inspect import isfunction, ismodule
from pathlib import Path

import pytest
from printed import NumberChecker

import missratio
from missratio import datasets, theory
from missratio.threshold import RULES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page):
    """The page with all but its examples blanked out, so that line numbers stay."""
    text = page.read_text(encoding="utf-8")
    kept, end = [], 0
    for block in FENCE.finditer(text):
        kept.append(re.sub(r"[^\n]", "", text[end : block.start(1)]))
        kept.append(block.group(1))
        end = block.end(1)
    return "".join(kept)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(page, capsys):
    test = doctest.DocTestParser().get_doctest(
        examples(page), {}, page.name, str(page), 0
    )
    doctest.DocTestRunner(NumberChecker()).run(test)
    report = capsys.readouterr().out
    assert not report, report


def test_quick_start_has_examples():
    assert examples(ROOT / "docs" / "quickstart.md").count(">>>") > 30


def test_certificates_has_examples():
    assert examples(ROOT / "docs" / "certificates.md").count(">>>") > 60


def test_api_page_lists_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = []
    for part in page.split(".. currentmodule:: ")[1:]:
        module = importlib.import_module(part.split()[0])
        names = re.findall(r"^   (\w+)$", part, re.M)
        assert all(hasattr(module, name) for name in names), module
        listed += [f"{module.__name__}.{name}" for name in names]
    assert len(listed) == len(set(listed))
    called = {
        f"missratio.{name}"
        for name in missratio.__all__
        if not ismodule(getattr(missratio, name))
    }
    functions = {
        f"missratio.theory.{name}"
        for name, value in vars(theory).items()
        if isfunction(value) and value.__module__ == theory.__name__
    }
    data = {
        f"{module.__name__}.{name}"
        for module in (datasets, datasets.simulations)
        for name in module.__all__
        if name != "simulations"
    }
    assert called | functions | data <= set(listed)
    assert len(called) <= 50


def test_every_rule_is_explained():
    page = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert f'| `"{rule}"` |' in page
        assert f"`{rule}`" in changes


@pytest.mark.parametrize(
    ("page", "printed", "same"),
    [
        ("0.07", "0.08", True),  # the last digit that is shown may be rounded otherwise
        ("0.07", "0.09", False),
        ("-1.05940033", "-1.05940033284", True),
        ("1.5e-12", "1.6e-12", True),
        ("1.5e-12", "1.7e-12", False),
        ("44 of 200", "45 of 200", False),
        ("44 of 200", "44  of\n200", True),
        ("well...: 3.6%", "well, as promised: 3.6%", True),
        ("1,234.5 rows", "1,234.6 rows", True),
        ("v1.2.3", "v1.2.4", False),
        ("sick", "well", False),
    ],
)
def test_numbers_are_compared_as_numbers(page, printed, same):
    assert NumberChecker().check_output(page, printed, 0) is same
