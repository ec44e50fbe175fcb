"""Type checkers know the public names, and refuse others."""

import subprocess
import sys
from pathlib import Path

import pytest

import biclique


@pytest.mark.once
@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ("from biclique import BicliqueSpectralClustering, load\nload", ""),
        ("import biclique\nbiclique.tables", ""),
        ("from biclique import SpectralClustring\nSpectralClustring", "SpectralClustring"),
        ("import biclique\nbiclique.tabels", "tabels"),
    ],
)
def test_type_checkers_refuse_a_name_that_does_not_exist(tmp_path, lines, refused):
    pytest.importorskip("mypy")
    (tmp_path / "two_lines.py").write_text(lines + "\n")
    package = Path(biclique.__file__)
    options = ["--config-file=", "--follow-imports=skip", "--cache-dir", tmp_path / "cache"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, tmp_path / "two_lines.py", package],
        cwd=package.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith(str(tmp_path)) or "two_lines.py" in line]
    assert len(found) == bool(refused), done.stdout + done.stderr
    assert refused in "".join(found)
