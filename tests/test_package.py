import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import biclique


def test_public_names_exist():
    for name in biclique.__all__:
        assert hasattr(biclique, name)
    assert set(biclique.__all__) <= {*dir(biclique)}
    assert not hasattr(biclique, "nothing")


def test_import_brings_no_extra_packages():
    code = (
        "import sys, sklearn.cluster; before = set(sys.modules); import biclique, biclique.cli;"
        "biclique.BicliqueSpectralClustering;"
        "heavy = {'pandas', 'polars', 'pyarrow', 'torch', 'dask', 'matplotlib', 'skops', 'tqdm'};"
        "heavy |= {'scipy.cluster', 'biclique.report', 'biclique.tables', 'biclique.selection'};"  # not to fit
        "heavy &= set(sys.modules) - before;"
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


def test_links_of_the_package_s_description_are_absolute():
    core = pytest.importorskip("hatchling.metadata.core")
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        pytest.skip("not in a checkout")
    plugins = pytest.importorskip("hatchling.plugin.manager").PluginManager()
    text = core.ProjectMetadata(str(root), plugins).core.readme
    assert "](https://biclique.readthedocs.io/en/latest/tutorial.html)" in text
    assert "/_images/report.png)" in text
    assert not re.findall(r"\]\((?!https://)[^)]*\)", text)


def test_what_builds_and_checks_is_pinned():
    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())
    tools = [*project["build-system"]["requires"], *project["dependency-groups"]["check"]]
    tools += re.findall(r"pip install --quiet (build\S*)", (root / "Makefile").read_text())
    tools += re.findall(r'"((?:uv|pip)[=>][^"]+)"', (root / ".ci" / "install.py").read_text())
    assert len(tools) == 7
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", tool) for tool in tools), tools
    workflows = "".join(path.read_text() for path in root.glob(".github/workflows/*"))
    actions = re.findall(r"uses: (\S+)", workflows)
    assert len(actions) == 4
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in actions), actions


def test_the_source_archive_holds_what_its_tests_need_and_nothing_else(tmp_path):
    builders = pytest.importorskip("hatchling.builders.sdist")
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        pytest.skip("not in a checkout")
    copy = tmp_path / "checkout"
    listed = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True)
    tracked = [name for name in listed.stdout.splitlines() if (root / name).exists()]
    for name in tracked:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((root / name).read_bytes())
    for stray in ("notes/src/secret.py", "notes/tests/secret.py", "secret.csv", ".env"):
        (copy / stray).parent.mkdir(parents=True, exist_ok=True)
        (copy / stray).write_text("not for others\n")
    (made,) = builders.SdistBuilder(str(copy)).build(directory=str(tmp_path / "out"))
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not [name for name in names if "secret" in name or name == ".env"]
    assert set(tracked) - names <= {".gitignore"}
