"""Packages that are not always there: what needs one of them is skipped."""

import pytest


class optional:  # noqa: N801
    """Stand for a module, and skip the test that first asks it for something.

    Where that happens at import, as in a decorator, all tests of the file are skipped.
    """

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        # pytest and inspect look for marks like __wrapped__ in whatever a file has.
        if attribute.startswith("_") or attribute == "pytestmark":
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)
