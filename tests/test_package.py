import re
import subprocess
import sys
import tomllib
from pathlib import Path

import biclique


def test_public_names_exist():
    for name in biclique.__all__:
        assert hasattr(biclique, name)


def test_import_brings_no_extra_packages():
    code = (
        "import sys, sklearn.cluster; before = set(sys.modules); import biclique, biclique.cli;"
        "heavy = {'pandas', 'polars', 'pyarrow', 'torch', 'dask', 'matplotlib'} & (set(sys.modules) - before);"
        "sys.exit(','.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_oldest_versions_that_are_tested_are_the_floors():
    root = Path(__file__).parent.parent
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (root / "constraints-oldest.txt").read_text(), re.MULTILINE))
    project = tomllib.loads((root / "pyproject.toml").read_text())
    floors = [*project["project"]["dependencies"], *project["dependency-groups"]["oldest"]]
    assert len(floors) > 3
    for name, floor in (text.split(">=") for text in floors):
        assert pins[name].removesuffix(".0") == floor.removesuffix(".0"), name
