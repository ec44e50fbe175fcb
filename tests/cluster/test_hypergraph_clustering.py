"""Spectral clustering of given hyperedges: against the definition, other packages, and on what can go wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.exceptions import DataError, DisconnectedWarning, FewerClustersWarning, MemoryLimitError, SolverWarning
from biclique.hypergraph import SPLITTINGS, ExpansionGram, distortion, k_way_normalized_cut, to_hypergraphx, to_xgi
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.scores import clustering_error
from tests import data, oracles
from tests.calls import refuses
from tests.optional import Optional

pd = Optional("pandas")
pl = Optional("polars")


def planted(n=90, k=3, n_edges=400, **how):
    """Edges mostly inside k groups of equal size, and the groups."""
    return data.planted(n, k, n_edges, **how), np.arange(n) % k


def fit(hypergraph, k=3, **parameters):
    return HypergraphSpectralClustering(k, random_state=0, **parameters).fit(hypergraph)


def check_definition(model, A, order, k, tolerance):
    """The eigenpairs are those of Algorithm 1 on the matrix of the expansion."""
    values, vectors = oracles.algorithm_1(A, order)
    np.testing.assert_allclose((2 / order) ** 2 * model.eigenvalues_, values[1:k], atol=tolerance / 100)
    found = oracles.projector(model.embedding_[model.labels_ >= 0])
    np.testing.assert_allclose(found, oracles.projector(vectors[:, :k]), atol=tolerance)


@pytest.mark.parametrize("expansion", ["star", "clique", "normalized_clique", "contraction"])
@pytest.mark.parametrize("order", [2, 3.5, 8])
def test_embedding_is_algorithm_1_of_the_expansion(expansion, order):
    hypergraph, _ = planted()
    A = ExpansionGram(hypergraph, expansion).matrix().toarray()
    check_definition(fit(hypergraph, expansion=expansion, order=order), A, order, 3, 1e-8)


@pytest.mark.parametrize("assign_labels", ["kmeans", "cluster_qr", "discretize", "kernel_kmeans"])
@pytest.mark.parametrize("expansion", ["star", "clique", "smaller_side"])
def test_planted_groups_are_found(assign_labels, expansion):
    hypergraph, groups = planted()
    model = fit(hypergraph, expansion=expansion, assign_labels=assign_labels)
    assert adjusted_rand_score(groups, model.labels_) > 0.95
    by_function = SPLITTINGS.get(expansion, expansion)
    assert model.cut_ == pytest.approx(k_way_normalized_cut(hypergraph, model.labels_, by_function))
    costs = [distortion(expansion, size) for size in range(2, 6)] if expansion in SPLITTINGS else [1]
    assert model.distortion_ == max(costs)


def test_kernel_kmeans_never_raises_the_cut():
    hypergraph, _ = planted(inside=0.5, seed=3)
    model = fit(hypergraph, assign_labels="kernel_kmeans")
    assert (np.diff(model.cut_history_) <= 1e-12).all()
    assert model.cut_ == pytest.approx(model.cut_history_[-1])
    assert not hasattr(model.set_params(assign_labels="kmeans").fit(hypergraph), "cut_history_")


def test_large_enough_to_iterate():
    hypergraph, groups = planted(n=900, n_edges=4000)
    model, again = fit(hypergraph), fit(hypergraph, n_jobs=1)
    check_definition(model, ExpansionGram(hypergraph, "star").matrix().toarray(), 2, 3, 1e-7)
    assert adjusted_rand_score(groups, model.labels_) > 0.95
    assert (again.embedding_ == model.embedding_).all()
    assert (again.labels_ == model.labels_).all()


@pytest.mark.once
def test_every_input_gives_the_same():
    hypergraph, _ = planted()
    hypergraph = hypergraph.with_weights(np.ones(hypergraph.n_edges))
    expected = fit(hypergraph).labels_
    H = hypergraph.incidence.toarray()
    H.flags.writeable = False
    inputs = [H, H.astype(int), sparse.csr_matrix(H), sparse.coo_array(H), pd.DataFrame(H), pl.DataFrame(H)]
    for X in inputs:
        assert (HypergraphSpectralClustering(3, random_state=0).fit_predict(X) == expected).all()
    xgi = pytest.importorskip("xgi", reason="XGI is not installed")
    assert (fit(to_xgi(hypergraph)).labels_ == expected).all()
    assert isinstance(to_xgi(hypergraph), xgi.Hypergraph)
    pytest.importorskip("hypergraphx", reason="hypergraphx is not installed")
    other = to_hypergraphx(hypergraph, merge_equal_edges=True)
    assert adjusted_rand_score(fit(other).labels_, expected) > 0.9  # equal edges are merged: weights differ a little


def test_frames_give_their_names():
    frame = pd.DataFrame([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]], index=list("abcd"), columns=["x", "y", "z"])
    with pytest.warns(DisconnectedWarning):
        model = fit(frame, 2)
    assert sorted(sorted(c) for c in model.clusters()) == [["a", "b"], ["c", "d"]]


def test_connected_parts_are_grouped_whole_at_order_2():
    edges = [[0, 1, 2, 3, 4], [0, 1, 2], [5, 6, 7], [8, 9, 10], [11, 12]]
    hypergraph = Hypergraph.from_edges(edges, vertices=14)
    with (
        pytest.warns(DisconnectedWarning, match="1 of 14 vertices share no edge"),
        pytest.warns(
            DisconnectedWarning, match=r"4 connected components \(5, 3, 3, 2 of 14 .*: they are grouped whole"
        ),
    ):
        model = fit(hypergraph, 2)
    assert model.labels_[13] == -1
    assert model.part_sizes_.tolist() == [5, 3, 3, 2]
    assert model.cut_ == pytest.approx(0, abs=1e-12)
    volumes = np.bincount(model.labels_[:13], hypergraph.degrees[:13])
    assert volumes.tolist() == [8, 8]  # 8 against 3 + 3 + 2: as even as whole parts allow
    np.testing.assert_allclose(model.embedding_[:13].T @ model.embedding_[:13], np.eye(2), atol=1e-12)
    A = ExpansionGram(hypergraph, "star").matrix().toarray()[:13, :13]
    roots = np.sqrt(A.sum(axis=1))
    np.testing.assert_allclose(A / np.outer(roots, roots) @ model.embedding_[:13], model.embedding_[:13], atol=1e-12)


@pytest.mark.parametrize("n", [60, 1200])
def test_fewer_parts_than_clusters(n):
    """Two parts, three clusters: one part is split, along its own weak line."""
    half, _ = planted(n=n, k=2, n_edges=5 * n, inside=0.97)
    edges = [*half.edges(), *([n + v for v in e] for e in np.random.default_rng(0).integers(0, n, (5 * n, 3)))]
    hypergraph = Hypergraph.from_edges(edges, vertices=2 * n)
    with pytest.warns(DisconnectedWarning, match="2 connected components"):
        model = fit(hypergraph)
    truth = np.concatenate([np.arange(n) % 2, np.full(n, 2)])
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert model.eigenvalues_[0] == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("options", [{}, {"n_components": 4}, {"expansion": "clique", "assign_labels": "cluster_qr"}])
@pytest.mark.parametrize(("k", "sizes"), [(2, [200, 4]), (3, [200, 2, 2])])
def test_at_least_as_many_parts_as_clusters_are_not_cut_however_small(k, sizes, options):
    big, groups = planted(n=200, k=2, n_edges=1200, inside=0.9)
    small = [[200, 201, 202], [201, 202, 203]] if len(sizes) == 2 else [[200, 201], [202, 203]]
    hypergraph = Hypergraph.from_edges([*big.edges(), *small], vertices=204)
    with pytest.warns(DisconnectedWarning, match=r"grouped whole, so that nothing is cut.* order=4 splits large comp"):
        model = fit(hypergraph, k, **options)
    assert sorted(np.bincount(model.labels_).tolist(), reverse=True) == sizes
    assert model.cut_ == pytest.approx(0, abs=1e-12)
    assert k_way_normalized_cut(hypergraph, model.labels_, options.get("expansion", "star")) == 0
    assert (model.predict(hypergraph.incidence) == model.labels_).all()
    with pytest.warns(DisconnectedWarning):
        above = fit(hypergraph, 2, order=4)
    assert adjusted_rand_score(groups, above.labels_[:200]) > 0.9  # small parts are left alone


def test_isolated_vertices_and_edges_of_one_vertex():
    hypergraph, _ = planted(n=30, n_edges=150)
    with_alone = Hypergraph.from_edges([*hypergraph.edges(), [30], []], [*hypergraph.weights, 5.0, 1.0], vertices=32)
    plain = fit(hypergraph)
    for expansion in ("star", "clique"):
        with pytest.warns(DisconnectedWarning, match="2 of 32 vertices share no edge"):
            model = fit(with_alone, expansion=expansion)
        assert model.labels_[30:].tolist() == [-1, -1]
        assert (model.embedding_[30:] == 0).all()
        assert adjusted_rand_score(model.labels_[:30], plain.labels_) == 1


def test_predict_new_vertices_by_the_edges_they_join():
    hypergraph, _ = planted()
    model = fit(hypergraph)
    assert (model.predict(hypergraph.incidence) == model.labels_).all()
    new = np.zeros((2, hypergraph.n_edges))
    joined = hypergraph.incidence[[0]].toarray()[0] > 0
    new[0, joined] = 1
    assert model.predict(new).tolist() == [model.labels_[0], -1]
    assert fit(hypergraph, assign_labels="kernel_kmeans").predict(new)[1] == -1
    refuses(ValueError, "features", model.predict, np.ones((1, 3)))
    refuses(DataError, r"hypergraph\.incidence", model.predict, hypergraph)
    labels = model.labels_
    model.set_params(n_clusters=5, n_components=2, row_normalize=False)
    assert (model.predict(hypergraph.incidence) == labels).all()


def test_the_unit_of_weights_and_the_order_of_vertices_and_edges_do_not_matter():
    hypergraph, _ = planted()
    model = fit(hypergraph)
    for scale in (1e-200, 1e200):
        other = fit(hypergraph.with_weights(hypergraph.weights * scale))
        np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, rtol=1e-10)
        assert (other.labels_ == model.labels_).all()
    random = np.random.default_rng(0)
    v, e = random.permutation(90), random.permutation(400)
    shuffled = Hypergraph.from_incidence(hypergraph.incidence[v][:, e], hypergraph.weights[e])
    assert adjusted_rand_score(model.labels_[v], fit(shuffled).labels_) == 1


def test_wine_as_a_hypergraph():
    """A real table: 178 wines, 13 columns cut into fifths, 65 edges of about 36 wines."""
    X, y = load_wine(return_X_y=True)
    fifths = 5 * X.argsort(axis=0).argsort(axis=0) // len(X)
    H = (fifths[:, :, None] == np.arange(5)).reshape(len(X), -1)
    assert clustering_error(y, fit(H).labels_) < 0.08


def test_embedding_agrees_with_xgi():
    xgi = pytest.importorskip("xgi", reason="XGI is not installed")
    network = xgi.uniform_HPPM(60, 3, 8, 0.9, seed=1)
    largest = max(xgi.connected_components(network), key=len)
    network = xgi.subhypergraph(network, nodes=largest).copy()
    L, index = xgi.normalized_hypergraph_laplacian(network, sparse=False, index=True)
    values, vectors = np.linalg.eigh(L)
    model = fit(network, 2)
    assert [index[i] for i in range(len(index))] == model.vertex_names_.tolist()
    assert values[2] - values[1] > 1e-3
    np.testing.assert_allclose(1 - model.eigenvalues_, values[1:2], atol=1e-10)
    np.testing.assert_allclose(oracles.projector(model.embedding_), oracles.projector(vectors[:, :2]), atol=1e-8)


def test_les_miserables_from_hypernetx():
    """Characters by chapters: the leading eigenvectors are those of HyperNetX's own incidence matrix."""
    pytest.importorskip("hypernetx", reason="HyperNetX is not installed; it holds pandas below 3")
    import hypernetx as hnx
    from hypernetx.utils.toys import LesMis

    with warnings.catch_warnings(action="ignore"):  # pandas' own, about how the toy groups its table
        scenes = LesMis().df_scenes
    chapters = scenes.groupby(["Volume", "Book", "Chapter"])["Characters"].agg(lambda c: sorted(set(c)))
    network = hnx.Hypergraph({"-".join(map(str, key)): members for key, members in chapters.items()})
    with pytest.warns(DisconnectedWarning):
        model = fit(network, 5, order=4)
    matrix, names, _ = network.incidence_matrix(index=True)
    kept = model.labels_ >= 0
    H = matrix.toarray()[[list(names).index(name) for name in model.vertex_names_[kept]]].astype(float)
    check_definition(model, (H / np.maximum(H.sum(axis=0), 1)) @ H.T, 4, 5, 1e-7)
    assert len(np.unique(model.labels_[kept])) == 5


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (Hypergraph.from_edges([[0], [1]]), "0 of 2 vertices share an edge"),
        (Hypergraph.from_edges([[0, 1]], [0.0]), "0 of 2 vertices"),
        (Hypergraph.from_edges([[0, 1], [1, 2]], [1, -1]), "must not be negative, edge 1"),
        (-np.ones((4, 4)), "Negative values"),
        (object(), "object"),
        ({"a": [1, 2]}, "from_dict"),
        ([[0, 1], [1, 2]], "Hypergraph.from_edges"),
        ("papers.json", "read_hypergraph"),
        (Hypergraph.from_edges([[0, 1, 2], [3, 4], [2, 3]], [1, 1e-30, 1e-30]), "compress the weights"),
    ],
)
def test_unusable_input(X, message):
    refuses(DataError, message, HypergraphSpectralClustering(2).fit, X)


def test_equal_rows_are_not_split_by_rounding():
    edges = [[0, 1, 2], [1, 2, 3, 4], [0, 4, 3], [5, 6, 7], [7, 8, 9], [5, 8, 9, 6], [0, 1], [5, 6, 9]]
    with pytest.warns((FewerClustersWarning, DisconnectedWarning)) as caught:
        model = fit(Hypergraph.from_edges(edges), n_components=2)
    assert any(issubclass(w.category, FewerClustersWarning) for w in caught)
    assert len(np.unique(model.labels_)) == 2
    with pytest.warns(FewerClustersWarning, match="1 cluster returned, 3 asked for"):
        fit(Hypergraph.from_edges([[0, 1, 2, 3, 4, 5]]))


def test_vectors_that_do_not_fit_the_free_memory_are_refused(monkeypatch):
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: 1000)
    with pytest.raises(MemoryLimitError, match=r"2 eigenvectors of 900 vertices needs .* ask for fewer clusters"):
        HypergraphSpectralClustering(3).fit(planted(n=900, n_edges=3000)[0])


def test_a_long_ring_is_cut_into_arcs():
    n = 6000
    hypergraph = Hypergraph.from_edges([[i, (i + 1) % n, (i + 2) % n] for i in range(n)], vertices=n)
    labels = fit(hypergraph, 4).labels_  # passes alone would warn that they do not converge, multigrid does
    assert np.bincount(labels).tolist() == [n // 4] * 4
    assert int((labels != np.roll(labels, 1)).sum()) == 4


def test_rings_whose_expansion_does_not_fit_are_warned_about(monkeypatch):
    n = 3000
    ring = Hypergraph.from_edges([[(i + j) % n for j in range(5)] for i in range(n)])
    free = iter([2**40])  # the vectors fit
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: next(free, 1000))
    monkeypatch.setattr("biclique.fit.hypergraphs.MOST_PASSES", 60)
    with pytest.warns(SolverWarning) as caught:
        fit(ring, 4)
    assert "passes were not enough" in str(caught[0].message)
    assert "does not fit: the star matrix of edges of up to 5 vertices needs" in str(caught[0].message)
