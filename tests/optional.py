"""Packages that tests use but the library does not need: without one, the tests that use it are skipped."""

from importlib.util import find_spec

import pytest


def needs(name):
    """A mark for tests, or parameters of tests, that need a package."""
    return pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed")


class Optional:
    """Stands for a package: ``pd = Optional("pandas")``. The package is imported when the first name in it is used."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith("__"):  # asked by pytest and pickle, and no use of the package
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)
