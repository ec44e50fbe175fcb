import subprocess
import sys
from pathlib import Path

from tests.optional import needs

EXAMPLES = Path(__file__).parent.parent / "examples"


@needs("matplotlib")
def test_the_heat_study_runs_and_draws(tmp_path):
    command = [sys.executable, EXAMPLES / "heat_convergence.py", "--quick", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ellipse" in done.stdout
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["heat_circle.png", "heat_convergence.csv", "heat_ellipse.png", "heat_sphere.png"]
