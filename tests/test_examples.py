import ast
import runpy
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.optional import needs

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@pytest.fixture
def run_example(capsys, monkeypatch):
    """Run a script as if it was called from the shell, and return what it prints."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


@needs("matplotlib")
def test_the_heat_study_runs_and_draws(run_example, tmp_path):
    assert "ellipse" in run_example("heat_convergence.py", "--quick", "--out", tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["heat_circle.png", "heat_convergence.csv", "heat_ellipse.png", "heat_sphere.png"]


@needs("matplotlib")
@needs("finufft")
def test_the_picture_of_many_points_is_drawn(run_example, tmp_path):
    printed = run_example("million_points.py", "--rows", 4000, "--out", tmp_path / "points.png")
    assert "biclique, gram='fourier': 4,000 points, agreement 1.000" in printed
    assert (tmp_path / "points.png").stat().st_size > 10_000


@needs("pandas")
def test_the_report_of_wines_is_written(run_example, tmp_path):
    printed = run_example("report.py", "--out", tmp_path / "wine.html")
    assert "number of clusters  3 clusters: halves of the rows find these again best" in printed
    text = (tmp_path / "wine.html").read_text(encoding="utf-8")
    assert "178 rows in 13 columns" in text
    assert "flavanoids" in text


@pytest.mark.parametrize("script", sorted(p.name for p in [*ROOT.glob("benchmarks/*.py"), *EXAMPLES.glob("*.py")]))
def test_names_that_scripts_import_exist(script):
    """Benchmarks run for minutes, so no test runs them: what they import from the package must at least be there."""
    (path,) = ROOT.glob(f"*/{script}")
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    lines = [n for n in nodes if isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] == "biclique"]
    for line in lines:
        module = import_module(line.module)
        for name in (alias.name for alias in line.names):
            found = hasattr(module, name) or find_spec(f"{line.module}.{name}") is not None
            assert found, f"{script} imports {name} from {line.module}"
