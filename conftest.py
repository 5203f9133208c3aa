"""Test files and modules that need an optional package are skipped without it."""

import sys
from importlib.util import find_spec

import pytest

OPTIONAL = {
    "altair", "array_api_strict", "dask", "distributed",
    "jinja2",
    "markdown_it", "matplotlib", "pandas", "polars", "torch", "triton", "vl_convert",
    "xlsxwriter",
}  # fmt: skip


def pytest_collection_modifyitems(items):
    """Skip the tests that are marked to need a package that isn't there."""
    for item in items:
        for mark in item.iter_markers("needs"):
            if absent := [name for name in mark.args if find_spec(name) is None]:
                reason = f"{', '.join(absent)} is not installed"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a file whose import fails for want of an optional package."""
    report = yield
    if report.failed and (absent := _absent(report.call.excinfo.value)):
        _skip(report, collector, absent)
        # pytest leaves what it could import by halves to the next who asks for it.
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == str(collector.path):
                del sys.modules[name]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip an example in a docstring or a page that needs one."""
    report = yield
    if report.failed and isinstance(item, pytest.DoctestItem):
        failures = getattr(call.excinfo.value, "failures", None) or [call.excinfo.value]
        raised = [getattr(failure, "exc_info", (None, None))[1] for failure in failures]
        if absent := _absent(raised[0]):
            _skip(report, item, absent)
    return report


def _absent(error):
    """The optional package for want of which something failed, if that is why."""
    while error is not None:
        name = (getattr(error, "name", None) or "").partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and name in OPTIONAL:
            return name
        error = error.__cause__ or error.__context__
    return None


def _skip(report, node, absent):
    report.outcome = "skipped"
    report.longrepr = str(node.path), 0, f"Skipped: {absent} is not installed"
    report.result = []
