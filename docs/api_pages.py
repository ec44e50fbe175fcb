"""Pages of the reference, written for every public name before the site is built (``docs/api/``, not kept).

A public name is in ``__all__`` of a public module. Each class and function has a page, each module a list. What
several modules offer has its page under the first of them.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

MODULES = {
    "biclique": "Estimators",
    "biclique.selection": "Settings and the number of clusters, chosen without labels",
    "biclique.hypergraph": "Given hyperedges",
    "biclique.tables": "Tables",
    "biclique.report": "Reports and plots",
    "biclique.datasets": "Data sets",
    "biclique.kernels": "Kernels",
    "biclique.multiway": "The paper's definitions",
    "biclique.scores": "Scores",
    "biclique.exceptions": "Errors and warnings",
}
"""Every public module, and its title."""


def public_names(module: str) -> list[str]:
    """Names that a module offers: ``__all__``, or without one the classes and functions that it defines."""
    found = import_module(module)
    names = getattr(found, "__all__", None)
    if names is None:
        names = [name for name, value in vars(found).items() if getattr(value, "__module__", None) == module]
    return sorted(name for name in names if not name.startswith("_"))


def documented() -> dict[str, list[tuple[str, str]]]:
    """For each module its names, each with the full name under which it has its page."""
    first: dict[int, str] = {}
    pages = {}
    for module in MODULES:
        pages[module] = []
        for name in public_names(module):
            value = getattr(import_module(module), name)
            full = f"{module}.{name}"
            pages[module].append((name, first.setdefault(id(value), full) if has_page(value) else full))
    return pages


def has_page(value: object) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def write(folder: Path) -> None:
    """Write all pages; those of names that are gone are removed."""
    wanted = {"index.rst": index()}
    for module, names in documented().items():
        wanted[f"{module}.rst"] = module_page(module, names)
        for name, full in names:
            value = getattr(import_module(module), name)
            if has_page(value) and full == f"{module}.{name}":
                wanted[f"{full}.rst"] = page(full, value)
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def index() -> str:
    lines = [
        *title("API reference"),
        "Every public name. Most users need the first page alone.",
        "",
        ".. toctree::",
        "   :maxdepth: 1",
        "",
    ]
    return "\n".join([*lines, *(f"   {text} <{module}>" for module, text in MODULES.items()), ""])


def module_page(module: str, names: list[tuple[str, str]]) -> str:
    """Title, the module's own text, a table of classes and functions, and constants with their values."""
    found = import_module(module)
    lines = [*title(f"{module}: {MODULES[module]}"), f".. py:module:: {module}", "", inspect.getdoc(found) or "", ""]
    values = {name: getattr(found, name) for name, _ in names}
    pages = [(name, full) for name, full in names if has_page(values[name])]
    if pages:
        lines += [".. list-table::", "   :widths: 35 65", ""]
        for name, full in pages:
            lines += [f"   * - :doc:`{name} <{full}>`", f"     - {first_line(values[name])}"]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        lines += [f"   {full}" for name, full in pages if full == f"{module}.{name}"]
    constants = [name for name, _ in names if not has_page(values[name])]
    if constants:
        lines += ["", "Constants and types", "-------------------", ""]
    for name in constants:
        lines += [f".. py:data:: {name}", "", f"   {shown(values[name])}", ""]
    return "\n".join([*lines, ""])


def page(full: str, value: object) -> str:
    kind = "autofunction" if not inspect.isclass(value) else "autoclass"
    lines = [*title(full.rpartition(".")[2]), f".. {kind}:: {full}"]
    if inspect.isclass(value):
        lines += ["   :members:", "   :inherited-members:"]
    return "\n".join([*lines, ""])


def title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def first_line(value: object) -> str:
    text = (inspect.getdoc(value) or "").strip().partition("\n")[0]
    return text.replace("|", r"\|").replace("*", r"\*").replace("_ ", r"\_ ")


def shown(value: object) -> str:
    """What a constant is, in one line: the keys of a table, or the value itself if it is short."""
    if isinstance(value, dict):
        return "A table with the keys " + ", ".join(f"``{key!r}``" for key in value) + "."
    text = repr(value)
    return f"``{text}``" if len(text) <= 90 and "\n" not in text else f"An object of type ``{type(value).__name__}``."
