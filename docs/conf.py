"""The site: ``make docs`` builds it in build/docs, with the gallery scripts that take seconds.

``make docs-full`` (BICLIQUE_DOCS=full) runs all gallery scripts.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "biclique"
author = "The biclique developers"
project_copyright = author
version = release = re.search(r'__version__ = "(.+?)"', (HERE / "../src/biclique/__init__.py").read_text()).group(1)

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["build", "api/header.rst", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
# Pages that are not written yet have their place in the table of contents: a pattern may match nothing.
suppress_warnings = ["toc.empty_glob", "config.cache"]
highlight_language = "none"

myst_heading_anchors = 3
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"biclique {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Scripts that take seconds are called plot_….py. The others show pictures that were drawn before.
    "filename_pattern": "." if os.environ.get("BICLIQUE_DOCS") == "full" else "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1,
    "capture_repr": (),
}


def plain_text(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:  # noqa: ARG001
    """Docstrings are plain text with formulas: |x| and names like labels_ are no markup of reStructuredText."""
    for number, line in enumerate(lines):
        parts = re.split(r"(``.*?``)", line)
        parts[::2] = [re.sub(r"(?<!\\)(\||(?<=\w)_(?!\w)|\*(?!\*))", r"\\\1", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def ours_alone(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:  # noqa: ARG001
    """Leave out what a class has from scikit-learn or from Python."""
    module = getattr(thing, "__module__", None) or getattr(getattr(thing, "fget", None), "__module__", None)
    return True if module and not str(module).startswith("biclique") else None


def setup(app: object) -> None:
    import api_pages

    api_pages.write(HERE / "api")
    app.connect("autodoc-process-docstring", plain_text, priority=100)
    app.connect("autodoc-skip-member", ours_alone)
