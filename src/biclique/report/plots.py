"""Plots on matplotlib's axes (extra ``[plot]``). Each takes ``ax``, draws, and returns it."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from biclique.exceptions import DataError, ParameterError
from biclique.report.gather import check_length
from biclique.report.places import principal
from biclique.report.rows import Subject, thinned
from biclique.report.sample import SAMPLE_LEAST, SAMPLE_ROWS, sample_again
from biclique.report.shown_columns import Columns, Sums
from biclique.runtime.axes import new_axes
from biclique.runtime.namespace import unit_rows
from biclique.selection import CountResult, OrderPath

COLOURS = ("#0072b2", "#d98200", "#008a63", "#b8558f", "#2f9bd6", "#c44a00", "#7a6a10")
MARKERS = ("o", "s", "^", "D", "v")
"""Of clusters, as in the report: neighbours differ in colour and shape."""


def _subject_of(model: Any) -> Subject:
    """What plots ask of a model."""
    if not hasattr(model, "_subject"):
        raise ParameterError(f"a fitted BicliqueSpectralClustering is needed, got a {type(model).__name__}.")
    check_is_fitted(model)
    found: Subject = model._subject()
    return found


def _check_columns(subject: Subject, way_out: str) -> None:
    """Refuse a model of a given matrix, whose X has one column for every training row."""
    if subject.given:
        raise DataError(
            f"there are no columns to plot: with affinity={subject.fitted.settings.kernel.affinity!r} X holds "
            f"similarities or distances of rows: {way_out}."
        )


def _look_of(cluster: int) -> dict[str, str]:
    """The colour and the marker of a cluster."""
    return {"color": COLOURS[cluster % len(COLOURS)], "marker": MARKERS[cluster % len(MARKERS)]}


def plot_clusters(model: Any, X: Any, *, view: str = "embedding", ax: Any = None) -> Any:
    """Draw rows as points, a colour and a shape for each cluster: one collection of points a cluster, in their order.

    ``X`` is as in ``predict``. ``view`` is "embedding" (two principal components of it, rows of length 1) or "columns"
    (two principal components; two columns are drawn as they are).
    """
    if view not in ("embedding", "columns"):
        raise ParameterError(f"view must be 'embedding' or 'columns', got {view!r}.")
    subject, names = _subject_of(model), ["", ""]
    labels = np.asarray(model.predict(X))
    if view == "embedding":
        places = principal(unit_rows(np.asarray(model.transform(X))))
    else:
        _check_columns(subject, "use view='embedding'")
        columns = Columns.of(X)
        two = len(columns.names) == 2 and not columns.categories
        places = np.asarray(columns.numbers) if two else principal(columns.numbers)
        names = columns.names if two else ["first principal component", "second principal component"]
    ax = new_axes() if ax is None else ax
    for cluster in range(subject.n_clusters):
        own = labels == cluster
        ax.scatter(*places[own].T, **_look_of(cluster), s=14, label=f"cluster {cluster} ({int(own.sum())})")
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.legend(fontsize="small")
    return ax


def plot_eigenvalues(model: Any, *, ax: Any = None) -> Any:
    """Draw the eigenvalues of the cut as the first line: near 1 groups hardly touch, near 0 there is none."""
    values = _subject_of(model).fitted.eigenvalues
    if not len(values):
        raise ParameterError("one cluster has no eigenvalues, so there is nothing to plot.")
    ax = new_axes() if ax is None else ax
    ax.stem(np.arange(1, len(values) + 1), values, basefmt="gray")
    limits = (min(0, float(values.min())) - 0.02, max(1, float(values.max())) + 0.05)
    ax.set(xlabel="eigenvalue", ylabel="value", ylim=limits)
    return ax


def plot_selection(found: Any, *, ax: Any = None) -> Any:
    """Draw what a search compared: stability over the number of clusters.

    ``found`` is a CountResult, or a model that was fitted with ``n_clusters="select"``.
    """
    if isinstance(found, CountResult):
        return found.plot(ax)
    chosen = _subject_of(found).counted
    if chosen is None:
        raise ParameterError("nothing was selected in this fit: set n_clusters to 'select'.")
    return chosen.plot(ax)


def plot_order_path(path: OrderPath, *, ax: Any = None) -> Any:
    """Draw the path over orders (``biclique.selection.order_path``): the share of each cluster at every order.

    Orders stand side by side at equal distances; clusters are lines, the largest first. The second axis has the
    agreement of an order with the next.
    """
    k = int(path.labels.max()) + 1
    shares = np.array([sorted(np.bincount(labels, minlength=k) / len(labels), reverse=True) for labels in path.labels])
    ax = new_axes() if ax is None else ax
    places = np.arange(len(path.orders))
    for cluster in range(k):
        ax.plot(places, shares[:, cluster], **_look_of(cluster), label=f"cluster of rank {cluster + 1}")
    agreed = ax.twinx()
    agreed.plot(places[:-1] + 0.5, path.agreement, color="gray", linestyle=":", marker=".")
    agreed.set(ylim=(float(path.agreement.min(initial=0.0)), 1.05), ylabel="agreement with the next order")
    ax.set_xticks(places, [f"{order:g}" for order in path.orders])
    ax.set(xlabel="order", ylabel="share of the rows", ylim=(0, None))
    ax.legend(fontsize="small")
    return ax


def plot_affinity(model: Any, X: Any, *, ax: Any = None) -> Any:
    """Draw the similarities of rows, ordered by cluster, as an image; of at most 1,000 rows, of every cluster some.

    Each cell of the image is a mean of K over groups of rows of one cluster.
    """
    subject = _subject_of(model)
    labels = np.asarray(model.predict(X))
    places = thinned(labels, subject.n_clusters, SAMPLE_ROWS, SAMPLE_LEAST, np.random.RandomState(0))
    (rows,) = subject.of_rows(X, lambda found: found[places])
    if subject.given:
        if rows.shape[1] != len(labels):
            raise DataError(f"X has shape {(len(labels), rows.shape[1])}: pass the square matrix of the fit.")
        rows = rows[:, places]
    found = sample_again(subject, rows, labels[places], path=False)
    if found.cells is None or found.clusters is None:
        raise DataError(f"there are no similarities to plot: {found.reason}.")
    ax = new_axes() if ax is None else ax
    image = ax.imshow(found.cells, cmap="Greys", interpolation="nearest")
    names, starts, sizes = np.unique(found.clusters, return_index=True, return_counts=True)
    for start in starts[1:]:
        ax.axhline(start - 0.5, color=COLOURS[0], linewidth=0.6)
        ax.axvline(start - 0.5, color=COLOURS[0], linewidth=0.6)
    middles = starts + (sizes - 1) / 2
    ax.set(xlabel="cluster", ylabel="cluster", xticks=middles, yticks=middles, xticklabels=names, yticklabels=names)
    ax.figure.colorbar(image, ax=ax, label="mean similarity")
    return ax


def plot_profile(model: Any, X: Any, *, table: Any = None, most: int = 15, ax: Any = None) -> Any:
    """Draw what sets clusters apart: (mean − mean of the rest)/standard deviation, clusters by columns.

    The image has the shape (columns, clusters). Only columns of numbers are drawn, at most ``most``, those that
    separate the clusters most; ``model.profile`` has categories too. ``table`` has columns to draw instead of those of
    X: the same rows in the same order. A model of a given matrix has no columns of its own, so it needs them.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ParameterError(f"most must be a whole number from 1, got {most!r}.")
    subject = _subject_of(model)
    if table is None:
        _check_columns(subject, "pass columns of the same rows as table=")
    columns, labels = Columns.of(X if table is None else table), np.asarray(model.predict(X))
    check_length(columns.numbers.shape[0], len(labels))
    if not columns.names:
        raise DataError("there is no column of numbers to plot: model.profile(X) compares categories.")
    sums = Sums.of(columns.numbers, labels, subject.n_clusters)
    best = np.argsort(-sums.separation, kind="stable")[:most]
    effects = sums.effects[:, best].T
    ax = new_axes() if ax is None else ax
    limit = float(np.abs(effects[np.isfinite(effects)]).max(initial=1.0))
    image = ax.imshow(np.clip(effects, -limit, limit), cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
    ax.set_yticks(range(len(best)), [columns.names[j] for j in best])
    ax.set(xlabel="cluster", xticks=range(subject.n_clusters))
    ax.figure.colorbar(image, ax=ax, label="difference from the rest, in standard deviations")
    return ax
