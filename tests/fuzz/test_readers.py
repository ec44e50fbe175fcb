"""A short campaign for every reader; BICLIQUE_FUZZ=10000 makes it a long one."""

import os

import pytest

from tests.fuzz.campaign import run
from tests.fuzz.readers import READERS

FILES = int(os.environ.get("BICLIQUE_FUZZ", "30"))


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name, tmp_path):
    report = run(READERS[name], FILES, seed=0, folder=tmp_path)
    assert report.count == FILES
    assert not report.failures, "\n".join(report.failures[:5])
