"""What a search tries: everything that is left to be selected, the rest as asked for."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from biclique import BicliqueSpectralClustering
from biclique.exceptions import ParameterError
from biclique.fit.plan import find_vertices
from biclique.progress import Progress
from biclique.selection import Candidate, make_candidates
from biclique.selection.order_path import make_cuts


def tried(n=500, **parameters):
    return make_candidates(BicliqueSpectralClustering(3, **parameters)._settings(), n)


def test_all_of_them():
    found = tried(affinity="select", gamma="select", order="select")
    graphs = [one for one in found if one.is_graph]
    kernels = [one for one in found if not one.is_graph]
    assert {(one.n_neighbors, one.neighbor_weights) for one in graphs} == {
        (5, "auto"),
        (10, "auto"),
        (20, "auto"),
        (10, "self_tuning"),
    }
    assert {one.order for one in graphs} == {2, 2.1, 4}
    assert len(graphs) == 12
    default, *rest = kernels
    assert (default.gamma_factor, default.order, default.row_normalize) == (None, "auto", "auto")
    assert {(one.gamma_factor, one.order, one.row_normalize) for one in rest} == {
        (factor, order, scaled)
        for factor in (0.25, 1, 4, 16, 64)
        for order in (2, 4, np.inf)
        for scaled in (True, False)
    }
    assert len({one.name for one in found}) == len(found) == 43


def test_the_default_is_among_them():
    X, _ = make_moons(400, noise=0.1, random_state=1)
    model = BicliqueSpectralClustering(2, affinity="select", gamma="select", order="select", random_state=0)
    (default,) = [one for one in make_candidates(model._settings(), len(X)) if one.order == "auto"]
    settings = default.applied(model._settings())
    vertices = find_vertices(settings, X, np.ones(len(X)))
    (found,) = make_cuts(settings, vertices, ["auto"], Progress(False)).at("auto", ["auto"])
    own = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert own.plan_.gamma_reason.startswith("4 × ")
    assert (found.labels[vertices.index] == own.labels_).all()
    np.testing.assert_allclose(found.eigenvalues, own.eigenvalues_)


def test_what_is_given_restricts():
    assert {one.order for one in tried(affinity="select", gamma="select", order=3)} == {3}
    assert {one.gamma_factor for one in tried(affinity="select", order="select")} == {None}
    assert {one.gamma for one in tried(gamma=0.5, order="select")} == {0.5}
    assert {one.affinity for one in tried(gamma="select", affinity="laplacian")} == {"laplacian"}
    assert {one.row_normalize for one in tried(gamma="select", row_normalize=False)} == {False}
    assert {one.row_normalize for one in tried(gamma="select", assign_labels="cluster_qr")} == {"auto"}
    graph = tried(affinity="nearest_neighbors", n_neighbors=7, order="select")
    assert {(one.n_neighbors, one.order) for one in graph} == {(7, 2), (7, 2.1), (7, 4)}
    sizes = {one.n_neighbors for one in tried(affinity="select", n_neighbors=7) if one.is_graph}
    assert sizes == {7}
    weights = {
        one.neighbor_weights for one in tried(affinity="select", neighbor_weights="connectivity") if one.is_graph
    }
    assert weights == {"connectivity"}


def test_what_is_impossible_is_left_out():
    assert not any(one.is_graph for one in tried(affinity="select", modelling="symmetric"))
    assert {one.order for one in tried(order="select", modelling="symmetric")} == {"auto", 2, 3, 4}
    assert not any(one.is_graph for one in tried(affinity="select", gram="nystroem"))
    assert all(one.is_graph for one in tried(affinity="select", eigen_solver="amg"))
    assert max(one.n_neighbors for one in tried(12, affinity="select") if one.is_graph) == 10


def test_a_bandwidth_needs_a_kernel_that_has_one():
    with pytest.raises(ParameterError, match=r"gamma='select' needs a kernel with a bandwidth.*'linear'.*leave gamma"):
        tried(affinity="linear", gamma="select")
    with pytest.raises(ParameterError, match="gamma='select' needs"):
        tried(affinity="nearest_neighbors", gamma="select")


def test_a_candidate_becomes_settings():
    settings = BicliqueSpectralClustering(3, affinity="select", gamma="select", order="select", n_init=3)._settings()
    applied = Candidate("nearest_neighbors", 2.1, n_neighbors=5, neighbor_weights="self_tuning").applied(settings)
    assert (applied.kernel.affinity, applied.cut.order, applied.holding.n_neighbors) == ("nearest_neighbors", 2.1, 5)
    assert applied.assigning.n_init == 3
    assert not applied.selecting
    assert Candidate("rbf", 2.0, gamma_factor=4.0).applied(settings).gamma_factor == 4
