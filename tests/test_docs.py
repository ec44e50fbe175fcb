"""Documents must not name tests that do not exist."""

import re
import tomllib
from pathlib import Path

import biclique
from biclique import hypergraph, multiway

ROOT = Path(__file__).parent.parent


def test_every_test_named_in_the_documents_exists():
    """By a path in tests/ and a name, or by one of the two."""
    defined = {"": ""}
    for path in (ROOT / "tests").rglob("test_*.py"):
        defined[path.relative_to(ROOT / "tests").as_posix()] = text = path.read_text(encoding="utf-8")
        defined[""] += text
    texts = [document.read_text(encoding="utf-8") for document in ROOT.glob("docs/*.md")]
    named = re.findall(r"`(?:tests/)?((?:\w+/)*test_\w+\.py|)(?:::)?(test_\w+|)`", "".join(texts))
    assert ("", "test_theorem_1_both_ways") in named
    assert len(set(named)) > 80
    missing = [(path, name) for path, name in named if name and f"\ndef {name}(" not in defined.get(path, "")]
    assert missing + [path for path, _ in named if path not in defined] == []


def test_every_function_named_in_the_table_of_the_theory_exists():
    lines = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split(" | ")[2] for line in lines if line.startswith("| ") and line.count(" | ") == 3]
    named = {name for cell in cells for name in re.findall(r"`([A-Za-z_]\w*)[`.(]", cell)}
    known = {*biclique.__all__, *multiway.__all__, *hypergraph.__all__}
    assert {"literal_incidence", "heat_flow", "contract"} <= named
    assert named - {"biclique", "predict"} <= known, named - known


def test_the_reproduction_page_explains_large_differences():
    """Every cell of the committed page that differs from the paper by more than 0.02 has the number of a remark."""
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    cells = re.findall(r"(0\.\d{4})[±.\d]* \((0\.\d{4})[±.\d]*\)(?: \[(\d+)\])? \|", text)
    assert len(cells) > 60
    assert all(remark or abs(float(ours) - float(paper)) <= 0.02 for ours, paper, remark in cells)
    assert {remark for *_, remark in cells} - {""} <= set(re.findall(r"^- \[(\d+)\] ", text, flags=re.MULTILINE))


def test_folders_are_listed_as_they_import():
    """The table of architecture.md is the list of layers of import-linter, from the bottom."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [name.split(" |")[0].removeprefix("biclique.") for name in contracts[0]["layers"]]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)/` ", page, flags=re.MULTILINE) == layers[-2::-1]  # without exceptions
