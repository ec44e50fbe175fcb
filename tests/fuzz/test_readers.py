"""A short campaign for every reader; BICLIQUE_FUZZ=10000 makes it a long one."""

import os
from pathlib import Path

import pytest

from tests.fuzz.campaign import run
from tests.fuzz.seeds_of_graphs import GRAPHS
from tests.fuzz.seeds_of_models import MODELS
from tests.fuzz.seeds_of_tables import TABLES

READERS = {**TABLES, **GRAPHS, **MODELS}
LONG = int(os.environ.get("BICLIQUE_FUZZ", "0"))
ROOM = 2**31
"""Bytes that a long campaign may take beyond what the imports took: more is a MemoryError, which is a failure."""


@pytest.fixture(autouse=bool(LONG))
def little_memory():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name, tmp_path):
    failures = run(READERS[name], LONG or 30, seed=0, folder=tmp_path)
    assert not failures, "\n".join(failures[:5])
