"""The site: ``make docs`` builds it in build/docs, with the gallery scripts that take seconds.

``make docs-full`` (BICLIQUE_DOCS=full) runs all gallery scripts.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

project = "biclique"
author = "The biclique developers"
project_copyright = author
version = release = re.search(r'__version__ = "(.+?)"', (HERE / "../src/biclique/__init__.py").read_text()).group(1)

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["build", "api/header.rst", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
suppress_warnings = ["config.cache"]
highlight_language = "none"

myst_heading_anchors = 3
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"biclique {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {name: [] for name in ("tutorial", "faq", "comparison", "api/biclique*")}  # nothing, or too much
html_theme_options = {
    "collapse_navigation": True,
    "navigation_depth": 2,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}

EXAMPLES = [
    *("neighbourhoods", "comparison", "messy_table", "choosing_k", "how_sure", "digits", "image_segmentation", "text"),
    *("motion", "unbalanced", "coauthors", "million_points", "consensus"),
]


class GalleryOrder:
    """First what most readers look for, then the others by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        short = name.removeprefix("plot_").removesuffix(".py")
        return (EXAMPLES.index(short) if short in EXAMPLES else len(EXAMPLES), name)


class ScriptArguments:
    """What make docs-full gives to scripts: those whose pictures were drawn before run a smaller study."""

    def __call__(self, gallery: dict[str, object], script: dict[str, str]) -> list[str]:  # noqa: ARG002
        return ["--quick"] if Path(script["src_file"]).name == "heat_convergence.py" else []

    def __repr__(self) -> str:  # the same in every build: Sphinx compares settings by it
        return "ScriptArguments"


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Scripts that take seconds are called plot_….py. The others show pictures that were drawn before.
    "filename_pattern": "." if os.environ.get("BICLIQUE_DOCS") == "full" else "/plot_",
    "within_subsection_order": GalleryOrder,
    "abort_on_example_error": True,
    "reset_argv": ScriptArguments(),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "capture_repr": (),
}


def plain_text(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:  # noqa: ARG001
    """Docstrings are plain text with formulas: |x| and names like labels_ are no markup of reStructuredText.

    Examples stay as they are, from ``>>>`` to the next empty line. Names of pages become links.
    """
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"(``.*?``)", line)
            parts[::2] = [re.sub(r"(?<!\\)(\||(?<=\w)_(?!\w)|\*(?!\*))", r"\\\1", part) for part in parts[::2]]
            lines[number] = re.sub(r"``docs/([a-z-]+)\.md``", r":doc:`/\1`", "".join(parts))


def ours_alone(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:  # noqa: ARG001
    """Leave out what a class has from scikit-learn or from Python."""
    module = getattr(thing, "__module__", None) or getattr(getattr(thing, "fget", None), "__module__", None)
    if module is None:
        return True if inspect.isbuiltin(thing) or inspect.ismethoddescriptor(thing) else None
    return None if str(module).startswith("biclique") else True


def list_pages(app: object, name: str, source: list[str]) -> None:  # noqa: ARG001
    """Links to files above docs/ become links to their pages.

    In guide.md, names of pages that do not exist are left out of the table of contents, and pages that are in no table
    are added.
    """
    source[0] = re.sub(r"\(\.\./(CONTRIBUTING|SECURITY)\.md", lambda found: f"({found[1].lower()}.md", source[0])
    if name == "guide":
        pages = {path.stem: path.read_text(encoding="utf-8") for path in HERE.glob("*.md")}
        tables = "\n".join(re.findall(r"```{toctree}.*?```", "\n".join(pages.values()), flags=re.DOTALL))
        named = {line for line in tables.splitlines() if re.fullmatch(r"[a-z-]+", line)}
        lines = [line for line in source[0].splitlines() if line not in named or line in pages]
        others = sorted(set(pages) - named - {"index"})
        source[0] = "\n".join(lines).replace("(all others)", "\n".join(others))


def setup(app: object) -> None:
    import api_pages

    api_pages.write(HERE / "api")
    app.connect("autodoc-process-docstring", plain_text, priority=100)
    app.connect("autodoc-skip-member", ours_alone)
    app.connect("source-read", list_pages)
