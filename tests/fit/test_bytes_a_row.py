"""The memory of a fit grows by a little for every row."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROWS, COLUMNS = 500_000, 16
MOST = 300
"""Bytes a row: 80 for the embedding in 10 columns, 28 for landmarks and their copy, 8 each for the label and weight."""
FIT = """
import sys
import numpy as np
from biclique import BicliqueSpectralClustering

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

model = BicliqueSpectralClustering(10, rank=300, random_state=0)
X = np.load(sys.argv[1], mmap_mode="r")
model.fit(X[:10_000])
before = peak()
model.fit(X)
print((peak() - before) / len(X))
"""


@pytest.mark.once
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read as on Linux")
def test_bytes_a_row(tmp_path):
    """Of a memory map, in a process of its own, beyond what a small fit takes."""
    random = np.random.default_rng(0)
    centres = random.uniform(-10, 10, (10, COLUMNS))
    X = centres[np.arange(ROWS) % 10] + random.normal(size=(ROWS, COLUMNS))
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    command = [sys.executable, "-c", FIT, str(tmp_path / "rows.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < MOST
