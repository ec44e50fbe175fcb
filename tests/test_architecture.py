"""docs/architecture.md and the tables of CONTRIBUTING.md are true: files, folders, and the path of a row."""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs

import biclique
from biclique import BicliqueSpectralClustering, Hypergraph, HypergraphSpectralClustering

ROOT = Path(__file__).parent.parent
SOURCE = Path(biclique.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EVERYWHERE = ("exceptions.py", "progress.py", "rows/checks.py", "runtime/")
"""What every fit uses, and no list names."""
KINDS = ("dense", "landmark", "chunked", "graph", "hypergraph")
MOST = 14
"""Files that a fit may enter."""


def section(text, title):
    """What stands below a heading, up to the next one of its level or above."""
    level = title.index(" ")
    return re.split(rf"^#{{1,{level}}} ", text.split(f"{title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def source_files():
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def entered(work):
    """The files under src/biclique in which a function is called, in the order of the first call."""
    work()  # imports and caches are not part of a fit
    files = {}

    def look(frame, event, _):
        if event == "call":
            files[frame.f_code.co_filename] = None

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    inside = [Path(name).relative_to(SOURCE).as_posix() for name in files if Path(name).is_relative_to(SOURCE)]
    return [name for name in inside if not name.startswith(EVERYWHERE)]


def fit_of(kind, folder):
    """One small fit of a model that is there already, in one thread: a profile sees no other."""
    X = make_blobs(3000, random_state=0)[0]
    options = {"random_state": 0, "n_jobs": 1}
    if kind == "dense":
        model, X = BicliqueSpectralClustering(3, gamma=0.5, **options), load_iris().data
    elif kind == "landmark":
        model = BicliqueSpectralClustering(3, gram="nystroem", gamma=1.0, order=2, **options)
    elif kind == "chunked":
        np.save(folder / "rows.npy", X)
        model, X = BicliqueSpectralClustering(3, gamma=1.0, order=2, **options), folder / "rows.npy"
    elif kind == "graph":
        model = BicliqueSpectralClustering(3, affinity="nearest_neighbors", **options)
    else:
        model = HypergraphSpectralClustering(2, **options)
        X = Hypergraph.from_edges([[0, 1, 2], [1, 2, 3], [4, 5, 6], [5, 6, 7], [3, 4]])
    return lambda: model.fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_enters_the_files_of_the_page_in_its_order(kind, tmp_path):
    (said,) = re.findall(rf"^### A {kind} fit: (\d+) files$", PAGE, flags=re.MULTILINE)
    lines = section(PAGE, f"### A {kind} fit: {said} files")
    listed = re.findall(r"^\d+\. `([\w/]+\.py)`: ", lines, flags=re.MULTILINE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = entered(fit_of(kind, tmp_path))
    assert found == listed
    assert len(found) == int(said) <= MOST


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
