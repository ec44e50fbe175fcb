"""Rules of the house that no other tool checks: ``python .ci/house.py``, a part of ``make check``.

1. A parameter or a field is never ``Any`` or ``object``, not even inside a union or a container.
2. Nobody outside a folder asks for the class of what it defines: no ``isinstance``, ``type(x) is`` or ``case``.

A class answers for itself: what callers want to know is a method with a default on the base class. The tables below
say what is allowed, and why. Every problem is printed as ``file:line: what is wrong``.
"""

from __future__ import annotations

import ast
import sys
from fnmatch import fnmatch
from pathlib import Path

FOLDERS = ("cluster", "selection", "fit", "rows", "gram", "spectral")
"""Where the rules hold."""

ROOTS = ("GramOperator", "CrossGram", "TrainedRows", "Kernel", "FeatureMap", "RowSource", "Fitted")
"""Nobody asks for one of these classes or for a subclass. A protocol has no subclasses: the name ends like its own."""

NUMPY = ("NDArray", "ndarray", "dtype", "floating", "integer", "number")
"""These types take ``Any`` for a shape or a precision, and remain types."""

ANYTHING = {
    ("cluster/*", "X"): "scikit-learn's methods take what users have",
    ("cluster/*", "y"): "scikit-learn's methods take it and ignore it",
    ("cluster/*", "sample_weight"): "what users have, and check_weights makes an array of it",
    ("cluster/consensus.py", "params"): "scikit-learn's set_params: parameters of members of any class",
    ("cluster/*", "value"): "a check, whose work is to look at any value",
    ("cluster/reporting.py", "table"): "a frame of any library, whose columns are shown",
    ("*", "kernel_params"): "what a user's own function takes",
    ("selection/*", "X"): "public functions take what users have",
    ("selection/*", "sample_weight"): "what users have, and check_weights makes an array of it",
    ("selection/*", "place"): "a row by its number or a column by its name, as in frames",
    ("selection/*", "ax"): "matplotlib has no types",
    ("fit/settings.py", "*"): "what users gave, before it is checked",
    ("fit/given_rows.py", "*"): "reads what users have",
    ("rows/*", "X"): "what users have, before it is known what it is",
    ("rows/*", "sample_weight"): "what users have, and check_weights makes an array of it",
    ("rows/array.py", "*"): "looks at what users have",
    ("rows/checks.py", "*"): "a table of any library, and its columns",
    ("rows/dask*", "*"): "Dask has no types: its arrays, graphs, keys and clients",
}
"""Files, and parameters or fields in them that may be of any type; ``*`` for all."""

ASKED = {
    ("fit/*", "Kernel"): "a check tells a user's kernel from a name and from a function",
    ("fit/*", "Gower"): "the metric is a name or this kernel",
}
"""Files, and classes that may be asked for in them."""


def problems(source: str, path: str, classes: dict[str, str]) -> list[tuple[int, str]]:
    """Line and text of every problem in a file; ``path`` is its place in the package, such as ``fit/settings.py``.

    ``classes`` are those that nobody may ask for, with their folders (``guarded_classes``).
    """

    def allowed(table: dict[tuple[str, str], str], what: str) -> bool:
        return any(fnmatch(path, file) and name in (what, "*") for file, name in table)

    folder = path.rpartition("/")[0]
    found = []
    for node in ast.walk(ast.parse(source)):
        for name in _loose_names(node):
            if not allowed(ANYTHING, name):
                found.append((node.lineno, f"{name} may be anything: give it a type"))
        for name in _asked_classes(node):
            if classes.get(name, folder) != folder and not allowed(ASKED, name):
                text = f"asks for the class {name}: ask a method of it, with a default on the base class"
                found.append((node.lineno, text))
    return sorted(found)


def guarded_classes(package: Path) -> dict[str, str]:
    """The classes that nobody outside their folders may ask for, and these folders."""
    bases: dict[str, list[str]] = {}
    folders: dict[str, str] = {}
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [_last_name(base) for base in node.bases]
                folders[node.name] = file.parent.relative_to(package).as_posix()

    def guarded(name: str) -> bool:
        return name.endswith(ROOTS) or any(guarded(base) for base in bases.get(name, []))

    return {name: folder for name, folder in folders.items() if guarded(name)}


def _loose_names(node: ast.AST) -> list[str]:
    """Parameters of a function or fields of a class that are of any type."""
    if isinstance(node, ast.FunctionDef):
        given = node.args
        parameters = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        return [p.arg for p in parameters if p is not None and _is_loose(p.annotation)]
    if isinstance(node, ast.ClassDef):
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
        return [ast.unparse(part.target) for part in fields if _is_loose(part.annotation)]
    return []


def _is_loose(kind: ast.AST | None) -> bool:
    """Whether ``Any`` or ``object`` is a part of a type."""
    if kind is None or (isinstance(kind, ast.Subscript) and _last_name(kind.value) in NUMPY):
        return False
    return _last_name(kind) in ("Any", "object") or any(map(_is_loose, ast.iter_child_nodes(kind)))


def _asked_classes(node: ast.AST) -> set[str]:
    """Classes that ``isinstance``, a comparison with ``type(x)`` or a ``case`` asks for."""
    if isinstance(node, ast.Call) and _last_name(node.func) in ("isinstance", "issubclass"):
        return _all_names(*node.args[1:])
    if isinstance(node, ast.Compare) and "type" in _all_names(node):
        return _all_names(node)
    return _all_names(node.cls) if isinstance(node, ast.MatchClass) else set()


def _last_name(node: ast.AST) -> str:
    """c of ``a.b.c``; nothing if a node is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _all_names(*nodes: ast.AST) -> set[str]:
    return {_last_name(part) for node in nodes for part in ast.walk(node)}


def main(package: Path) -> int:
    classes = guarded_classes(package)
    found = 0
    for folder in FOLDERS:
        for file in sorted((package / folder).rglob("*.py")):
            path = file.relative_to(package).as_posix()
            for line, text in problems(file.read_text(encoding="utf-8"), path, classes):
                print(f"{file}:{line}: {text}")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1] / "src" / "biclique"))
