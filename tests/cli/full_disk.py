"""A disk that is full, for this process."""

from contextlib import contextmanager

import pytest


@contextmanager
def full_disk(size=200):
    """No file that is written inside gets longer than so many bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
