"""docs/architecture.md is true, files have names of their own, and imports have no cycle."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "biclique"
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def imports():
    """For each module the modules that it imports, at the top, in functions and for types."""
    modules = {".".join(("biclique", *path.with_suffix("").parts)).removesuffix(".__init__"): path for path in FILES}
    graph = {}
    for module, path in modules.items():
        named = set()
        for node in ast.walk(ast.parse((SOURCE / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                named |= {node.module, *(f"{node.module}.{part.name}" for part in node.names)}
            elif isinstance(node, ast.Import):
                named |= {part.name for part in node.names}
        graph[module] = (named & modules.keys()) - {module, "biclique"}
    return graph


def test_imports_have_no_cycle():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_every_folder_has_a_noun():
    section = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Folders\n")[1]
    named = re.findall(r"^\| `(\w+)/` \| ", section, flags=re.MULTILINE)
    assert sorted(named) == sorted({path.parts[0] for path in FILES if len(path.parts) > 1})


def test_every_file_name_is_there_once():
    for files in (FILES, (ROOT / "tests").rglob("test_*.py")):
        names = [path.name for path in files if not path.name.startswith("__")]
        assert len(set(names)) == len(names)


def test_tests_lie_in_the_folders_of_the_source():
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders - {Path(), Path("fuzz"), Path("golden")} <= {path.parent for path in FILES}


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
)
def test_files_that_documents_name_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.])((?:[\w.]+/)+\w+\.py)\b", text))
    places = (ROOT, SOURCE, ROOT / "src", ROOT / "tests")
    assert [name for name in named if not any((place / name).exists() for place in places)] == []
