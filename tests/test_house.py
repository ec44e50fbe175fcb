"""``.ci/house.py`` finds what it is for, and the package keeps its rules."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOUSE = runpy.run_path(str(ROOT / ".ci" / "house.py"))
CLASSES = HOUSE["guarded_classes"](ROOT / "src" / "biclique")


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: Any): ...",
        "def f(x: typing.Any | None): ...",
        "def f(x: Mapping[str, object]): ...",
        "def f(*x: Any): ...",
        "def f(*, x: Callable[[Any], None] = None): ...",
        "class C:\n    def f(self, x: Any): ...",
        "class C:\n    x: Any",
    ],
)
def test_a_parameter_or_a_field_of_any_type_is_found(source):
    ((_, text),) = HOUSE["problems"](source, "fit/fitted.py", CLASSES)
    assert text.startswith("x may be anything")


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(x, DenseGram)",
        "isinstance(x, (str, gram.DenseGram))",
        "issubclass(x, DenseGram)",
        "type(x) is DenseGram",
        "match x:\n    case DenseGram():\n        pass",
    ],
)
def test_a_question_for_a_class_is_found_outside_its_folder(source):
    ((_, text),) = HOUSE["problems"](source, "fit/fitted.py", CLASSES)
    assert text.startswith("asks for the class DenseGram")
    assert not HOUSE["problems"](source, "gram/tiled.py", CLASSES)


def test_what_is_allowed_is_not_found():
    for source in (
        "def f(x: NDArray[Any], dtype: np.dtype[Any], y: FloatArray | None = None) -> Any: ...",
        "isinstance(x, (str, int)) or type(x) is dict",
    ):
        assert not HOUSE["problems"](source, "fit/fitted.py", CLASSES)
    assert {"TiledGram", "RBF", "NystroemMap", "ArrayRows"} < set(CLASSES)


def test_the_package_keeps_the_rules(capsys):
    assert HOUSE["main"](ROOT / "src" / "biclique") == 0, capsys.readouterr().out
