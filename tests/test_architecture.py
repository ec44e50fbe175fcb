"""docs/architecture.md and the tables of CONTRIBUTING.md are true: files and folders."""

import re
from pathlib import Path

import pytest

import biclique

ROOT = Path(__file__).parent.parent
SOURCE = Path(biclique.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(text, title):
    """What stands below a heading, up to the next one of its level or above."""
    level = title.index(" ")
    return re.split(rf"^#{{1,{level}}} ", text.split(f"{title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def source_files():
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def test_every_folder_has_a_noun():
    named = re.findall(r"^\| `(\w+)/` \| ", section(PAGE, "## Folders"), flags=re.MULTILINE)
    folders = {name.split("/")[0] for name in source_files() if "/" in name}
    assert sorted(named) == sorted(folders)


def test_every_file_is_named_once_among_the_layers():
    named = []
    for item in section(CONTRIBUTING, "## Layers").split("\n- ")[1:]:
        folder = re.match(r"`([\w/]+/)`", item)
        named += [(folder[1] if folder else "") + name for name in re.findall(r"`(\w+\.py)`", item)]
    files = [name for name in source_files() if not name.endswith(("__init__.py", "__main__.py"))]
    assert sorted(named) == files


def test_every_file_name_is_there_once():
    for files in (SOURCE.rglob("*.py"), (ROOT / "tests").rglob("test_*.py")):
        names = [path.name for path in files if not path.name.startswith("__")]
        assert len(set(names)) == len(names)


def test_tests_lie_in_the_folders_of_the_source():
    folders = {path.parent.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders - {".", "fuzz", "golden"} <= {str(Path(name).parent) for name in source_files()}


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
)
def test_files_that_documents_name_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.])((?:[\w.]+/)+\w+\.py)\b", text))
    missing = [name for name in named if not any((place / name).exists() for place in (ROOT, SOURCE, ROOT / "src"))]
    assert not missing
