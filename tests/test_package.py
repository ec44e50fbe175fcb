import subprocess
import sys

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
