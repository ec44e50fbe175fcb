"""Plots: what the artists hold, and one smoke render each."""

import io

import numpy as np
import pytest

from biclique import BicliqueKernelKMeans, BicliqueSpectralClustering
from biclique.exceptions import DataError, ParameterError
from biclique.report import (
    plot_affinity,
    plot_clusters,
    plot_eigenvalues,
    plot_order_path,
    plot_profile,
    plot_selection,
)
from biclique.selection import order_path
from tests.calls import refuses
from tests.optional import Optional, needs
from tests.report.made import fitted, given, groups

figures = Optional("matplotlib.figure")
pyplot = Optional("matplotlib.pyplot")
pytestmark = needs("matplotlib")


def rendered(ax):
    """Draw the figure; the axes."""
    out = io.BytesIO()
    ax.figure.savefig(out, format="png", dpi=30)
    pyplot.close(ax.figure)
    assert out.getbuffer().nbytes > 500
    return ax


@pytest.fixture
def axes():
    return figures.Figure().add_subplot()


def test_clusters(axes):
    model, X = fitted(), groups()
    assert plot_clusters(model, X, ax=axes) is axes
    assert [len(points.get_offsets()) for points in axes.collections] == np.bincount(model.labels_).tolist()
    of_two = BicliqueSpectralClustering(3, random_state=0).fit(X[:, :2])
    drawn = rendered(plot_clusters(of_two, X[:, :2], view="columns"))
    found = np.concatenate([points.get_offsets() for points in drawn.collections])
    assert sorted(found.tolist()) == sorted(X[:, :2].tolist())
    refuses(ParameterError, "view must be 'embedding' or 'columns', got 'x'", plot_clusters, model, X, view="x")


def test_eigenvalues(axes):
    model = fitted()
    assert rendered(plot_eigenvalues(model, ax=axes)) is axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), model.eigenvalues_)


def test_selection(axes):
    model = fitted("select")
    for plot in (lambda: plot_eigenvalues(model), model.k_selection_.plot):  # without axes pyplot shows a new figure
        figure = plot().figure
        assert pyplot.gcf() is figure
        pyplot.close(figure)
    assert rendered(plot_selection(model, ax=axes)) is axes
    stability = [one.stability for one in model.k_selection_.counted]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), stability)
    assert model.k_selection_.plot(axes) is axes
    assert plot_selection(model.k_selection_).get_xlabel() == axes.get_xlabel() == "number of clusters"
    refuses(ParameterError, "nothing was selected", plot_selection, fitted())


def test_path_over_orders(axes):
    path = order_path(groups(), [2, 4, np.inf], n_clusters=3, random_state=0)
    assert rendered(plot_order_path(path, ax=axes)) is axes
    shares = np.array([line.get_ydata() for line in axes.lines])
    assert shares.shape == (3, 3)
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    assert shares[0, 0] == np.bincount(path.labels[0]).max() / len(groups())
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "4", "inf"]


def test_affinity(axes):
    assert rendered(plot_affinity(fitted(), groups(), ax=axes)) is axes
    image = axes.images[0].get_array()
    third = len(image) // 3
    assert image[:third, :third].mean() > 3 * image[:third, third:].mean()


def test_profile(axes):
    model, X = fitted(), groups()
    assert rendered(plot_profile(model, X, most=2, ax=axes)) is axes
    assert axes.images[0].get_array().shape == (2, 3)
    assert [tick.get_text() for tick in axes.get_yticklabels()] in (["x0", "x1"], ["x1", "x0"])
    refuses(ParameterError, "most must be a whole number from 1, got 0", plot_profile, model, X, most=0)
    with pytest.raises(DataError, match="no column of numbers to plot"):
        plot_profile(model, X, table=np.array([["a"], ["b"]] * 60, dtype=object))


def test_a_model_of_a_given_matrix_has_no_columns_of_its_own(axes):
    X, (model, K) = groups(), given()
    missing = "no columns to plot: with affinity='precomputed' X holds similarities or distances of rows: "
    refuses(DataError, missing + "pass columns of the same rows as table=", plot_profile, model, K)
    refuses(DataError, missing + "use view='embedding'", plot_clusters, model, K, view="columns")
    refuses(DataError, "table has 5 rows, X has 120", plot_profile, model, K, table=X[:5])
    assert rendered(plot_profile(model, K, table=X, ax=axes)) is axes
    assert axes.images[0].get_array().shape == (3, 3)


@pytest.mark.parametrize("plot", [plot_clusters, plot_affinity, plot_profile, plot_eigenvalues, plot_selection])
def test_other_models_are_refused_in_words(plot):
    rows = () if plot in (plot_eigenvalues, plot_selection) else (groups(),)
    other = BicliqueKernelKMeans(3, random_state=0).fit(groups())
    refuses(ParameterError, "a fitted BicliqueSpectralClustering is needed, got a BicliqueKernel", plot, other, *rows)
    refuses(ValueError, "not fitted", plot, BicliqueSpectralClustering(3), *rows)
