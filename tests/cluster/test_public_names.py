"""Type checkers know the public names, and refuse others."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import biclique

LINES = """import biclique
from biclique import BicliqueSpectralClustering, load
from biclique import SpectralClustring
print(BicliqueSpectralClustering, load, SpectralClustring, biclique.tables)
print(biclique.tabels)
"""


@pytest.mark.once
def test_type_checkers_refuse_a_name_that_does_not_exist(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "lines.py").write_text(LINES)
    package = Path(biclique.__file__)
    options = ["--config-file=", "--follow-imports=skip", "--cache-dir", tmp_path / "cache"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, tmp_path / "lines.py", package],
        cwd=package.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r'lines\.py:(\d+): .* no attribute "(\w+)"', done.stdout)
    assert found == [("3", "SpectralClustring"), ("5", "tabels")], done.stdout + done.stderr
