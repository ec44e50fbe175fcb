import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOUSE = runpy.run_path(str(ROOT / ".ci" / "house.py"))
CLASSES = HOUSE["guarded_classes"](ROOT / "src" / "biclique")


def problems(source, path="fit/plan.py"):
    return HOUSE["problems"](source, path, CLASSES)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: Any): ...",
        "def f(x: object): ...",
        "def f(x: typing.Any): ...",
        "def f(x: Any | None): ...",
        "def f(x: 'dict[str, Any]'): ...",
        "def f(x: Mapping[str, object]): ...",
        "def f(x: Callable[[Any], None]): ...",
        "def f(*x: Any): ...",
        "def f(**x: Any): ...",
        "def f(*, x: Any = None): ...",
        "async def f(x: Any, /): ...",
        "class C:\n    def f(self, x: Any): ...",
        "def f():\n    def g(x: Any): ...",
        "class C:\n    x: Any",
        "x: TypeAlias = Any",
        "x: TypeAlias = 'list[Any] | None'",
        "x = Any",
        "x = Callable[[Any], int]",
    ],
)
def test_a_parameter_a_field_or_an_alias_of_any_type_is_found(source):
    ((_, text),) = problems(source)
    assert text.startswith("x may be anything")
    assert problems(source, "_typing.py")


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(x, DenseGram)",
        "isinstance(x, gram.DenseGram)",
        "isinstance(x, (str, DenseGram))",
        "isinstance(x, str | DenseGram)",
        "issubclass(x, DenseGram)",
        "type(x) is DenseGram",
        "type(x) in (DenseGram, int)",
        "DenseGram is not type(x)",
        "x.__class__ == DenseGram",
        "type(x).__name__ == 'DenseGram'",
        "type(x).__qualname__ == 'DenseGram'",
        "DenseGram in type(x).__mro__",
        "{DenseGram: 1}[type(x)]",
        "{DenseGram: 1}.get(type(x), 0)",
        "KINDS = (int, DenseGram)\nisinstance(x, KINDS)",
        "KINDS = {DenseGram: 1}\nKINDS.get(type(x))",
        "match x:\n    case DenseGram():\n        pass",
    ],
)
def test_a_question_for_a_class_is_found_outside_its_folder(source):
    ((_, text),) = problems(source)
    assert text.startswith("asks for the class DenseGram")
    assert not problems(source, "gram/tiled.py")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("GramOperator", "gram"),
        ("NeighborGram", "gram"),  # through SparseGram
        ("NeighborCross", "gram"),
        ("ExpansionGram", "hypergraph"),
        ("RBF", "kernels"),
        ("NystroemMap", "features"),
        ("DeviceRows", "rows"),
        ("ParquetColumns", "io"),
        ("ExactFitted", "fit"),  # has no base class: Fitted is a protocol
    ],
)
def test_operators_kernels_maps_sources_and_models_are_guarded(name, folder):
    assert CLASSES[name] == folder
    assert problems(f"isinstance(x, {name})", "cluster/estimator.py")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("getattr(gram, 'held')", "looks for an attribute of gram"),
        ("getattr(getattr(gram, 'held', None), 'rows', None)", "looks for an attribute of gram"),
        ("hasattr(self.gram, 'K')", "looks for an attribute of self.gram"),
        ("vars(gram)", "looks for an attribute of gram"),
        ("'K' in dir(gram)", "looks for an attribute of gram"),
        ("gram.__dict__", "looks for an attribute of gram"),
        ("try:\n    gram.K\nexcept (KeyError, AttributeError):\n    pass", "finds out by an error"),
        ("from typing import Any as Whatever", "calls Any by another name"),
        ("gram.K  # type: ignore", "hides an error of mypy (any)"),
        ("gram.K  # type: ignore[attr-defined]", "hides an error of mypy (attr-defined)"),
        ("gram.name == 'dense'", "compares the name of gram"),
        ("gram.name.startswith('d')", "compares the name of gram"),
        ("{'dense': 1}[gram.name]", "compares the name of gram"),
        ("{'dense': 1}.get(gram.name)", "compares the name of gram"),
        ("'dense' != cut.gram.name", "compares the name of cut.gram"),
        ("gram.name in ('dense', 'sparse')", "compares the name of gram"),
        ("match gram.name:\n    case 'dense':\n        pass", "compares the name of gram"),
    ],
)
def test_a_probe_for_a_class_is_found(source, said):
    assert all(text.startswith(said) for _, text in problems(source))
    assert problems(source)


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("def f(x: NDArray[Any], dtype: np.dtype[Any], y: FloatArray | None = None) -> Any: ...", "fit/plan.py"),
        ("def a_rank(name: str, value: object) -> None: ...", "fit/settings.py"),
        ("def fit(self, X: Any, y: Any = None, sample_weight: Any = None): ...", "cluster/clustering.py"),
        ("isinstance(x, (str, int)) or type(x) is dict or f'{type(x).__name__}'", "fit/plan.py"),
        ("getattr(self, 'labels_', None) or self.name == 'amg' or f'{gram.name}'", "fit/plan.py"),
        ("choice.name == 'dense' or GRAMS[choice.name]", "fit/plan.py"),
        ("from typing import Any\nTABLE.get(name) or TABLE[name] or name.startswith('d')", "fit/plan.py"),
        ("x = ('no row', 'one row')[n]", "fit/plan.py"),
        ("try:\n    x()\nexcept ValueError:\n    vars(self)", "fit/plan.py"),
        ("f()  # type: ignore[override]\nf()  # type: ignore[override]", "gram/spread.py"),
    ],
)
def test_what_is_allowed_is_not_found(source, path):
    assert problems(source, path) == []


def test_what_is_allowed_in_one_file_is_found_in_another():
    assert problems("def fit(self, X: Any): ...", "fit/plan.py")
    assert problems("choice.name == 'dense'", "gram/dense.py")
    assert problems("isinstance(value, Kernel)", "fit/plan.py")
    assert not problems("isinstance(value, Kernel)", "fit/settings.py")
    assert problems("f()  # type: ignore[override]", "gram/tiled.py")


def test_more_ignored_errors_than_before_are_found():
    assert len(problems("f()  # type: ignore[override]\n" * 3, "gram/spread.py")) == 3


@pytest.mark.parametrize("table", ["ANYTHING", "ASKED", "PROBED", "NAMED", "IGNORES"])
def test_every_line_of_a_table_is_needed(table, monkeypatch):
    lines, package = HOUSE[table], ROOT / "src" / "biclique"
    files = {file.relative_to(package).as_posix(): file.read_text(encoding="utf-8") for file in package.rglob("*.py")}
    for line in list(lines):
        monkeypatch.delitem(lines, line)
        looked_at = [path for path in files if path.startswith(line[0].removesuffix("*"))]
        assert any(problems(files[path], path) for path in looked_at), line
        monkeypatch.undo()


def test_the_package_keeps_the_rules_and_the_script_says_where_one_does_not(tmp_path):
    def run(script):
        return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)

    done = run(ROOT / ".ci" / "house.py")
    assert (done.returncode, done.stdout) == (0, "")
    for folder in (".ci", "src/biclique/gram"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src" / "biclique" / "_typing.py").write_text("Rows: TypeAlias = Any\n")
    (tmp_path / "src" / "biclique" / "gram" / "dense.py").write_text("\n\ndef f(x: Any): ...\n")
    done = run(shutil.copy(ROOT / ".ci" / "house.py", tmp_path / ".ci"))
    assert done.returncode == 1
    typing, dense = done.stdout.splitlines()
    assert "_typing.py:1: Rows may be anything" in typing
    assert "dense.py:3: x may be anything" in dense
