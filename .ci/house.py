"""Rules of the house that no other tool checks: ``python .ci/house.py``, a part of ``make check``.

1. A parameter is never ``Any`` or ``object``, not even inside a union or a container. Nor is a field or an alias.
2. Nobody outside a folder asks for the class of what it defines: no ``isinstance``, ``type(x) is`` or ``case``.
3. Nobody finds out a class in another way: no ``getattr``, ``hasattr``, ``vars`` or ``dir``, no ``except
   AttributeError``, no comparison with ``x.name``.
4. There is no new ``type: ignore``, and ``Any`` has no other name: both would hide a parameter of any type.

A class answers for itself: what callers want to know is a method with a default on the base class. The tables below
say what is allowed, and why. Every problem is printed as ``file:line: what is wrong``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

FOLDERS = ("cluster", "selection", "fit", "rows", "gram", "spectral")
"""Where the rules hold. In ``_typing.py`` too, since an alias there could hide ``Any``."""

ROOTS = ("GramOperator", "CrossGram", "TrainedRows", "Kernel", "FeatureMap", "RowSource", "ChunkSource", "Fitted")
"""Nobody asks for one of these classes or for a subclass. A protocol has no subclasses: the name ends like its own."""

NUMPY = ("NDArray", "ndarray", "dtype", "floating", "integer", "number")
"""These types take ``Any`` for a shape or a precision, and remain types."""

Table = dict[tuple[str, str], str]

ANYTHING: Table = {
    ("cluster/*", "X"): "scikit-learn's methods take what users have, and read_array makes rows of it",
    ("cluster/*", "y"): "scikit-learn's methods take it and ignore it",
    ("cluster/*", "sample_weight"): "what users have, and check_weights makes an array of it",
    ("cluster/reporting.py", "table"): "a frame of any library, whose columns are shown",
    ("cluster/*", "kernel_params"): "what a user's own function takes",
    ("selection/*", "X"): "public functions take what users have, and read_rows makes rows of it",
    ("selection/*", "sample_weight"): "what users have, and check_weights makes an array of it",
    ("selection/order_path.py", "kernel_params"): "what a user's own function takes",
    ("selection/count_result.py", "place"): "a row by its number or a column by its name, as in frames",
    ("selection/count_result.py", "ax"): "the same",
    ("fit/settings.py", "kernel_params"): "what a user's own function takes",
    ("fit/settings.py", "parameters"): "what users gave, before it is checked",
    ("fit/settings.py", "Check"): "the type of a check, whose work is to look at any value",
    ("rows/array.py", "X"): "what users have, before it is known what it is",
    ("rows/array.py", "sample_weight"): "what users have, and check_weights makes an array of it",
    ("rows/array.py", "recognises"): "looks at what users have",
    ("rows/array.py", "open"): "opens what users have",
    ("rows/dask_rows.py", "*"): "Dask has no types: its arrays, graphs, keys and clients",
    ("rows/dask_tiles.py", "*"): "the same",
    ("rows/tasks.py", "*"): "what Dask hands to a task: chunks of any kind of array, and results of any function",
    ("fit/state.py", "state"): "NumPy's own dictionary of a generator",
    ("rows/checks.py", "X"): "a table of any library, before it is an array",
    ("rows/checks.py", "cells"): "a column of such a table",
    ("rows/checks.py", "values"): "what users gave as X or as weights",
    ("rows/checks.py", "x"): "what users gave as X or as weights",
    ("rows/checks.py", "sample_weight"): "what users gave as weights",
}
"""Files, and parameters, fields or aliases in them that may be of any type; ``*`` for all of a file that speaks to a
package without types."""

ASKED: Table = {
    ("fit/state.py", "Kernel"): "a user's own kernel is code, and a state holds data: an error says so",
    ("fit/settings.py", "Kernel"): "a check tells a user's kernel from a name and from a function",
}
"""Files, and classes that may be asked for in them."""

PROBED: Table = {
    ("fit/state.py", "value"): "what a user's own kernel is called, for an error",
    ("cluster/*", "X"): "a table of any library",
    ("cluster/consensus.py", "model"): "a clusterer of any library",
    ("rows/checks.py", "X"): "a table of any library",
    ("rows/dask_rows.py", "*"): "Dask's collections and clients, which are known by what they have",
    ("rows/tasks.py", "*"): "a chunk of any kind of array",
    ("fit/settings.py", "sys.modules.get('torch')"): "a module that may not be there",
    ("fit/state.py", "one"): "a class is made again from its stored fields, whatever they are called",
    ("gram/spread.py", "gram"): "tiles elsewhere are the same operator: all that it holds is taken over",
}
"""Files, and values in them whose attributes may be looked for. A class may always look at itself."""

NAMED: Table = {
    ("fit/plan.py", "choice"): "a Choice is a decision, and its name says which",
    ("fit/exact.py", "options"): "the name of a solver, as the user gave it",
}
"""Files, and values in them whose ``name`` may be compared. A class may always compare its own."""

IGNORES: dict[tuple[str, str], int] = {
    ("fit/low_rank.py", "no-any-return"): 3,  # an array of a library without types
    ("rows/dask_rows.py", "no-any-return"): 3,
    ("gram/spread.py", "override"): 2,  # tiles elsewhere become tiles here
    ("spectral/start.py", "no-any-return"): 1,
    ("spectral/solver.py", "no-any-return"): 1,
    ("spectral/rounding.py", "no-any-return"): 2,
    ("spectral/assign.py", "attr-defined"): 1,
}
"""Files, codes of mypy's errors that are ignored in them, and how often. Numbers here only fall."""


def problems(source: str, path: str, classes: dict[str, str]) -> list[tuple[int, str]]:
    """Line and text of every problem in a file; ``path`` is its place in the package, such as ``fit/plan.py``.

    ``classes`` are those that nobody may ask for, with their folders (``guarded_classes``).
    """

    def allowed(table: Table, what: str) -> bool:
        return any(fnmatch(path, file) and name in (what, "*") for file, name in table)

    tree = ast.parse(source)
    held = _held_classes(tree, set(classes))
    found = _hidden_errors(source, path)
    for node in ast.walk(tree):
        found += [
            (node.lineno, f"{name} may be anything: give it a type")
            for name in _loose_names(node)
            if not allowed(ANYTHING, name)
        ]
        found += [
            (node.lineno, f"asks for the class {name}: ask a method of it, with a default on the base class")
            for asked in _asked_classes(node)
            for name in held.get(asked, {asked})
            if classes.get(name, _folder(path)) != _folder(path) and not allowed(ASKED, name)
        ]
        found += [
            (node.lineno, f"looks for an attribute of {value}: declare it on its base class, with a default")
            for value in _probed_values(node)
            if value != "self" and not allowed(PROBED, value)
        ]
        found += [(node.lineno, text) for text in _disguises(node) if not allowed(PROBED, "AttributeError")]
        found += [
            (node.lineno, f"compares the name of {value}: ask a method of it, with a default on the base class")
            for value in _named_values(node)
            if value != "self" and not allowed(NAMED, value)
        ]
    return sorted(found)


def _hidden_errors(source: str, path: str) -> list[tuple[int, str]]:
    """Rule 4: every ``type: ignore`` of a kind that a file has more often than it may."""
    found = [
        (number, code)
        for number, text in enumerate(source.splitlines(), 1)
        for codes in re.findall(r"# type: ignore(?:\[([\w, -]+)\])?", text)
        for code in codes.split(",")
    ]
    counts = Counter(code for _, code in found)
    more = {code for code, count in counts.items() if count > IGNORES.get((path, code), 0)}
    return [
        (n, f"hides an error of mypy ({code or 'any'}): give the value its type") for n, code in found if code in more
    ]


def guarded_classes(package: Path) -> dict[str, str]:
    """The classes that nobody outside their folders may ask for, and these folders."""
    bases: dict[str, list[str]] = {}
    folders: dict[str, str] = {}
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [_last_name(base) for base in node.bases]
                folders[node.name] = _folder(file.relative_to(package).as_posix())

    def guarded(name: str) -> bool:
        return name.endswith(ROOTS) or any(guarded(base) for base in bases.get(name, []))

    return {name: folder for name, folder in folders.items() if guarded(name)}


# Rule 1


def _loose_names(node: ast.AST) -> list[str]:
    """Parameters of a function, fields of a class or an alias, if they are of any type."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = node.args
        all_of_them = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
        parameters = [p for p in all_of_them if p is not None]
        return [] if _is_check(parameters) else [p.arg for p in parameters if _is_loose(p.annotation)]
    if isinstance(node, ast.ClassDef):
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
        return [ast.unparse(part.target) for part in fields if _is_loose(part.annotation)]
    if isinstance(node, ast.AnnAssign) and _last_name(node.annotation) == "TypeAlias" and _is_loose(node.value):
        return [ast.unparse(node.target)]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Subscript) and _is_loose(node.value):
        return [ast.unparse(target) for target in node.targets]
    return []


def _is_check(parameters: list[ast.arg]) -> bool:
    """A check of any value, as the table of constraints holds them: ``(name: str, value: object)``."""
    kinds = [ast.unparse(p.annotation) for p in parameters if p.annotation is not None]
    return kinds == ["str", "object"] and parameters[-1].arg == "value"


def _is_loose(kind: ast.AST | None) -> bool:
    """Whether ``Any`` or ``object`` is a part of a type."""
    if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
        try:
            kind = ast.parse(kind.value, mode="eval")
        except SyntaxError:  # a text that is no type
            return False
    if kind is None or (isinstance(kind, ast.Subscript) and _last_name(kind.value) in NUMPY):
        return False
    return _last_name(kind) in ("Any", "object") or any(map(_is_loose, ast.iter_child_nodes(kind)))


# Rule 2


def _held_classes(tree: ast.Module, classes: set[str]) -> dict[str, set[str]]:
    """Names of a file that stand for classes: ``KINDS = (DenseGram, TiledGram)``."""
    given = [part for part in tree.body if isinstance(part, ast.Assign) and len(part.targets) == 1]
    named = {_last_name(part.targets[0]): _all_names(part.value) & classes for part in given}
    return {name: inside for name, inside in named.items() if inside}


def _asked_classes(node: ast.AST) -> set[str]:
    """Classes that ``isinstance``, ``type(x)`` in a comparison or as a key, or a ``case`` asks for; also by name."""
    if isinstance(node, ast.Call) and _last_name(node.func) in ("isinstance", "issubclass"):
        return _all_names(*node.args[1:])
    if isinstance(node, ast.Compare) and any(map(_is_class_of, (node.left, *node.comparators))):
        return _all_names(node.left, *node.comparators)
    if isinstance(node, ast.Subscript) and _is_class_of(node.slice):
        return _all_names(node.value)
    if isinstance(node, ast.Call) and any(map(_is_class_of, node.args)) and _last_name(node.func) == "get":
        return _all_names(node.func)
    return _all_names(node.cls) if isinstance(node, ast.MatchClass) else set()


def _is_class_of(node: ast.AST) -> bool:
    """``type(x)``, ``x.__class__``, or the ``__name__`` or ``__mro__`` of one."""
    if isinstance(node, ast.Attribute) and node.attr in ("__name__", "__qualname__", "__mro__"):
        return _is_class_of(node.value)
    return (isinstance(node, ast.Call) and _last_name(node.func) == "type") or _last_name(node) == "__class__"


# Rule 3


def _probed_values(node: ast.AST) -> list[str]:
    """What ``getattr``, ``hasattr``, ``vars`` or ``dir`` looks at: x of ``getattr(getattr(x, "a"), "b")``."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return [ast.unparse(node.value)]
    looks = isinstance(node, ast.Call) and _last_name(node.func) in ("getattr", "hasattr", "vars", "dir")
    if not looks or not node.args:
        return []
    return _probed_values(node.args[0]) or [ast.unparse(node.args[0])]


def _disguises(node: ast.AST) -> list[str]:
    """An error of a missing attribute that is caught, and ``Any`` under another name."""
    if isinstance(node, ast.ExceptHandler) and node.type is not None and "AttributeError" in _all_names(node.type):
        return ["finds out by an error whether an attribute is there: declare it on its base class, with a default"]
    if isinstance(node, ast.ImportFrom) and any(name.name == "Any" and name.asname for name in node.names):
        return ["calls Any by another name: give what it is for a type"]
    return []


def _named_values(node: ast.AST) -> list[str]:
    """x of ``x.name == "dense"``, ``x.name.startswith("d")``, ``TABLE[x.name]`` and ``match x.name``."""
    sides: tuple[ast.AST, ...] = ()
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
    elif isinstance(node, ast.Match):
        sides = (node.subject,)
    elif isinstance(node, ast.Subscript):
        sides = (node.slice,)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        looks = {"get": node.args[:1], "startswith": [node.func.value], "endswith": [node.func.value]}
        sides = tuple(looks.get(node.func.attr, ()))
    return [ast.unparse(side.value) for side in sides if isinstance(side, ast.Attribute) and side.attr == "name"]


# Names


def _last_name(node: ast.AST) -> str:
    """c of ``a.b.c``; nothing if a node is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _all_names(*nodes: ast.AST) -> set[str]:
    """Every name in some nodes, also as text: ``type(x).__name__ == "DenseGram"``."""
    parts = [part for node in nodes for part in ast.walk(node)]
    texts = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return texts | {_last_name(part) for part in parts}


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def main(package: Path) -> int:
    classes = guarded_classes(package)
    files = [package / "_typing.py", *(file for folder in FOLDERS for file in sorted((package / folder).rglob("*.py")))]
    found = 0
    for file in files:
        for line, text in problems(file.read_text(encoding="utf-8"), file.relative_to(package).as_posix(), classes):
            print(f"{file}:{line}: {text}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1] / "src" / "biclique"))
