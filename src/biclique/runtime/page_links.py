"""Where scikit-learn's diagrams of our estimators link to: the page of the class on our site."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import ClassVar


class PageLink:
    """Gives an estimator the link ``site/api/biclique.Name.html``, which scikit-learn asks for by these names."""

    _doc_link_module = "biclique"
    _page_module: ClassVar[str] = "biclique"
    """The public module under which the class has its page."""

    @property
    def _doc_link_template(self) -> str:
        """The address with names to fill in; empty, which means no link, if the package names no site."""
        site = documentation_site()
        return site and f"{site}/api/{{estimator_module}}.{{estimator_name}}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"estimator_module": self._page_module, "estimator_name": type(self).__name__}


@cache
def documentation_site() -> str:
    """The address of our site, as the installed package names it; empty if it names none."""
    try:
        links = metadata("biclique").get_all("Project-URL") or []
    except PackageNotFoundError:
        links = []
    found: dict[str, str] = dict(link.split(", ", 1) for link in links)
    return found.get("Documentation", "").rstrip("/")
