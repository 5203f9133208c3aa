"""What the README and the pages of the documentation show is what their code gives."""

import ast
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
LINKED = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md"))]
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


@pytest.mark.parametrize(
    ("page", "least"), [("quickstart", 30), ("certificates", 40), ("cookbook", 50)]
)
def test_guide_has_examples(page, least):
    assert examples(ROOT / "docs" / f"{page}.md").count(">>>") > least


LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
MADE = ("auto_examples", "generated")  # what the build of the pages makes


def anchors(page):
    """Headings as the parser of the pages and GitHub name them."""
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    heads = re.findall(r"^#{1,3} (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in LINK.findall(text):
        if target.startswith(MADE):
            continue
        to = page.parent / target if target else page
        assert to.exists(), target
        assert not anchor or anchor in anchors(to), f"{target}#{anchor}"


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_commands_name_what_exists(page):
    """Numbers are printed by a script or a target, and these are there."""
    text = " ".join(page.read_text(encoding="utf-8").split())
    for script in re.findall(r"(?:python|pytest)(?: -m validity)? ([\w/]+\.py)", text):
        assert (ROOT / script).exists(), script
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z]+)", text):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_benchmark_is_named_somewhere():
    folder = ROOT / "benchmarks"
    users = [*PAGES, ROOT / "Makefile", *folder.glob("*.py")]
    users += (ROOT / "tests").rglob("*.py")
    texts = {file: file.read_text(encoding="utf-8") for file in users}
    for file in folder.glob("*.py"):
        named = rf"benchmarks/{file.name}|^ *(import|from) {file.stem}\b"
        assert any(
            re.search(named, text, re.M) for user, text in texts.items() if user != file
        ), file.name


def test_front_page_lists_every_page():
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(\w+)$", front.partition("```{toctree}")[2], re.M)
    assert sorted([*listed, "index"]) == sorted(
        page.stem for page in (ROOT / "docs").glob("*.md")
    )


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
        f"missratio.datasets.{name}"
        for name, value in vars(datasets).items()
        if not name.startswith("_") and not ismodule(value)
    }
    laws = datasets.simulations.__all__
    data |= {f"missratio.datasets.simulations.{name}" for name in laws}
    assert called | functions | data <= set(listed)
    assert len(called) <= 50


SOURCE = ROOT / "src" / "missratio"


def defined(file):
    """Functions, classes and methods of a file, such as KLIEP and KLIEP.fit."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}"


def test_architecture_names_what_exists():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    house = page.partition("```text")[2].partition("```")[0]
    rooms = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
    rooms = {room.removesuffix(".py") for room in rooms if not room.startswith("__")}
    rooms |= {f"app/{path.stem}" for path in (SOURCE / "app").glob("[a-z]*")}
    for room in rooms - {"app"}:
        assert re.search(rf"(?<![\w/]){room}\b", house), room
    for name, function in re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", page):
        file = next(base / name for base in (SOURCE, ROOT) if (base / name).exists())
        assert not function or function in defined(file), f"{name}:{function}"


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
