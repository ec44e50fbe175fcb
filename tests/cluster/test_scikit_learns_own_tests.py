"""scikit-learn's tests of its SpectralClustering and SpectralEmbedding, with our classes in their place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.once
@pytest.mark.parametrize("module", ["cluster.tests.test_spectral", "manifold.tests.test_spectral_embedding"])
def test_scikit_learns_own_tests(module, tmp_path):
    """``swapped.py`` has the differences that are expected, and why."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # warnings are no errors there
    here = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.cluster.swapped", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--pyargs", f"sklearn.{module}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
