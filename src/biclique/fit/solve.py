"""One fit: Settings and rows → Fitted."""

from __future__ import annotations

from biclique.fit.choose import check_source
from biclique.fit.exact_fitted import fit_exact
from biclique.fit.fitted import Fitted, Training
from biclique.fit.neighborhood_cut import map_neighborhoods
from biclique.fit.settings import Settings
from biclique.fit.three_passes import fit_factored, map_kernel
from biclique.kernels.named import check_rows_for_kernel
from biclique.progress import Progress
from biclique.rows.array import RowSource


def fit_rows(settings: Settings, source: RowSource, progress: Progress) -> tuple[Fitted, Training]:
    """What a model keeps, and what the rows of the fit got, by neighbourhoods, a factored K, or an exact one."""
    check_source(settings, source)
    if source.in_memory and source.device is None and settings.kernel.of_rows:
        check_rows_for_kernel(settings.kernel.affinity, source.held)
    if settings.kernel.neighborhoods and settings.pointwise:
        return fit_factored(settings, source, map_neighborhoods, progress)
    if (settings.factored and settings.pointwise) or not source.in_memory:
        return fit_factored(settings, source, map_kernel, progress)
    return fit_exact(settings, source, progress)
