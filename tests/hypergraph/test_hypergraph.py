"""The class: ways in, what it counts, immutability, what it refuses."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from biclique.exceptions import DataError, ParameterError
from biclique.hypergraph.hypergraph import Hypergraph
from tests import oracles
from tests.calls import refusals
from tests.optional import Optional

pd = Optional("pandas")
pl = Optional("polars")

EDGES = st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=8)


@settings(deadline=None, max_examples=50)
@given(EDGES)
def test_every_way_in_gives_the_same(edges):
    from_edges = Hypergraph.from_edges(edges, vertices=7)
    counts = np.zeros((7, len(edges)))
    for e, edge in enumerate(edges):
        for v in edge:
            counts[v, e] += 1
    assert (from_edges.incidence.toarray() == counts).all()
    assert Hypergraph.from_incidence(counts) == from_edges
    assert Hypergraph.from_incidence(sparse.csc_matrix(counts)) == from_edges
    assert Hypergraph.from_dict(dict(enumerate(edges)), vertices=range(7)) == from_edges
    assert [sorted(edge) for edge in edges] == list(from_edges.edges())
    assert from_edges.edge_sizes.tolist() == [len(edge) for edge in edges]
    assert from_edges.degrees.tolist() == [sum(edge.count(v) for edge in edges) for v in range(7)]
    assert from_edges.has_repeats == any(len(set(edge)) < len(edge) for edge in edges)
    assert pickle.loads(pickle.dumps(from_edges)) == from_edges


def test_integer_vertices_are_sorted_and_text_stays_in_the_order_seen():
    assert Hypergraph.from_edges([[30, 10], [20]]).vertex_names.tolist() == [10, 20, 30]
    assert Hypergraph.from_edges(np.array([[30, 10], [20, 10]])).vertex_names.tolist() == [10, 20, 30]
    assert Hypergraph.from_edges([[10**15, -3]]).vertex_names.tolist() == [-3, 10**15]
    assert Hypergraph.from_edges([["b", "a"], ["c"]]).vertex_names.tolist() == ["b", "a", "c"]
    assert Hypergraph.from_edges([["b", 1], [(2, 3)]]).vertex_names.tolist() == ["b", 1, (2, 3)]
    assert Hypergraph.from_edges([[np.int64(4), np.int32(2)]]).vertex_names.tolist() == [2, 4]
    assert Hypergraph.from_edges([[2**70, 5]]).vertex_names.tolist() == [5, 2**70]


def test_edges_from_generators_sets_and_frames():
    assert Hypergraph.from_edges(({1, 2}, frozenset([3]), (4, 4))).edge_sizes.tolist() == [2, 1, 2]
    assert Hypergraph.from_edges(iter(e) for e in [[1, 2], [3]]).n_edges == 2
    frame = pd.DataFrame([[1, 0], [2, 1]], index=["x", "y"], columns=["e", "f"])
    hypergraph = Hypergraph.from_incidence(frame)
    assert hypergraph.to_dict() == {"e": ["x", "y", "y"], "f": ["y"]}


def test_tensor_round_trip_with_and_without_repeats():
    edges = [[0, 0, 3], [0, 1, 2], [1, 2, 3], [2, 2, 2]]
    weights = np.random.default_rng(0).random(4)
    hypergraph = Hypergraph.from_edges(edges, weights, vertices=4)
    tensor = oracles.symmetric_edge_tensor(edges, weights, 4, 3)
    np.testing.assert_array_equal(hypergraph.to_tensor(), tensor)
    assert Hypergraph.from_tensor(tensor) == hypergraph


def test_immutable():
    read_only = np.arange(6).reshape(2, 3)
    read_only.flags.writeable = False
    given = sparse.csr_array(np.array([[1.0, 0.0], [1.0, 1.0]]))
    hypergraph = Hypergraph(given, [1.0, 2.0])
    given.data[:] = 7
    assert hypergraph.edge_sizes.tolist() == [1, 2]
    for array in (hypergraph.members.data, hypergraph.incidence.data, hypergraph.weights, hypergraph.vertex_names):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(AttributeError):
        hypergraph.weights = np.ones(2)
    with contextlib.suppress(ValueError):  # a copy changes, or nothing does
        hypergraph.incidence.setdiag(4)
    hypergraph.members.data = np.full(3, 5.0)
    assert hypergraph.edge_sizes.tolist() == [1, 2]
    assert hypergraph.incidence.toarray().tolist() == [[1, 1], [0, 1]]
    assert Hypergraph.from_edges(read_only).n_vertices == 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sparse.csc_array, sparse.csr_array])
def test_given_sparse_matrices_stay_as_they_are(dtype, kind):
    matrix = kind((np.array([5, 6, 7, 8], dtype), np.array([2, 0, 1, 0]), np.array([0, 2, 4])))
    before = [a.copy() for a in (matrix.data, matrix.indices, matrix.indptr)]
    (Hypergraph.from_incidence if kind is sparse.csc_array else Hypergraph)(matrix)
    for old, new in zip(before, (matrix.data, matrix.indices, matrix.indptr), strict=True):
        assert (old == new).all()
        assert new.flags.writeable


def test_read_only_sparse_matrices_may_hold_zeros():
    zeros = sparse.csc_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(3, 1))
    zeros.data.flags.writeable = False
    assert Hypergraph.from_incidence(zeros).n_incidences == 2


def test_names_in_many_forms():
    big = np.array([2**64 - 1, 0], dtype=np.uint64)
    assert Hypergraph.from_incidence(np.ones((2, 1)), vertex_names=big).vertex_names.tolist() == [2**64 - 1, 0]
    by_name = pd.Series({"b": 5.0, "a": 1.0})
    assert Hypergraph.from_dict({"a": [1, 2], "b": [2, 3]}, weights=by_name).weights.tolist() == [1, 5]
    polars = pl.DataFrame({"e1": [1, 0], "e2": [0, 1]})
    assert Hypergraph.from_incidence(polars).edge_names.tolist() == ["e1", "e2"]
    far = np.array([[10**12, 3], [3, -(10**15)]])
    assert Hypergraph.from_edges(far).to_dict() == {0: [3, 10**12], 1: [-(10**15), 3]}
    assert Hypergraph.from_edges(far, vertices=[10**12, -(10**15), 3]).edge(1) == [-(10**15), 3]
    assert Hypergraph.from_edges([np.array([1, 2]), np.array([3])]).n_vertices == 3
    assert Hypergraph.from_edges([[0, 1]], vertices=[1, 0]).vertex_names.tolist() == [1, 0]
    assert Hypergraph.from_edges([[0, 1]]).restricted([]).n_vertices == 0


def test_components_and_isolated_vertices():
    hypergraph = Hypergraph.from_edges([[0, 1, 2], [3, 4], [4, 5, 6, 7], [8, 9], []], [1, 1, 1, 0, 1], vertices=11)
    parts = hypergraph.components()
    assert np.bincount(parts).tolist() == [5, 3, 1, 1, 1]
    assert set(np.flatnonzero(parts == 0)) == {3, 4, 5, 6, 7}
    assert np.flatnonzero(hypergraph.isolated()).tolist() == [8, 9, 10]
    largest = hypergraph.largest_component()
    assert largest.to_dict() == {1: [3, 4], 2: [4, 5, 6, 7]}


def test_components_agree_with_the_graph_of_pairs():
    random = np.random.default_rng(3)
    for _ in range(20):
        edges = [random.integers(0, 40, random.integers(0, 4)).tolist() for _ in range(20)]
        hypergraph = Hypergraph.from_edges(edges, vertices=40)
        H = hypergraph.incidence
        n, labels = sparse.csgraph.connected_components(H @ H.T, directed=False)
        ours = hypergraph.components()
        assert ours.max() + 1 == n
        assert len(set(zip(ours, labels, strict=True))) == n


def test_restricted_and_renamed():
    hypergraph = Hypergraph.from_dict({"a": [1, 2], "b": [3]}, {"b": 2.0})
    assert hypergraph.restricted([0, 1]).to_dict() == {"a": [1, 2]}
    assert hypergraph.restricted(np.array([False, True, True])).to_dict() == {"a": [2], "b": [3]}
    assert hypergraph.renamed(vertex_names="xyz").to_dict() == {"a": ["x", "y"], "b": ["z"]}
    assert hypergraph.with_weights([5, 6]).weights.tolist() == [5, 6]
    assert hypergraph.uniform_order is None
    assert hypergraph != hypergraph.with_weights([5, 6])


test_refused_with_a_reason = refusals(
    (lambda: Hypergraph.from_edges("abc"), DataError, "collection of collections"),
    (lambda: Hypergraph.from_edges([[1], 5]), DataError, "edge 1 is 5"),
    (lambda: Hypergraph.from_edges(["ab", ["c"]]), DataError, "edge 0 is the text 'ab'"),
    (lambda: Hypergraph.from_edges([["a", None]]), DataError, "missing"),
    (lambda: Hypergraph.from_edges([[float("nan"), 1.0]]), DataError, "missing"),
    (lambda: Hypergraph.from_edges([[[1]]]), DataError, "hashable"),
    (lambda: Hypergraph.from_edges([[1, 9]], vertices=3), DataError, "edge 0 holds 9"),
    (lambda: Hypergraph.from_edges([["a"], ["b", "z"]], vertices=["a", "b"]), DataError, "edge 1 holds 'z'"),
    (lambda: Hypergraph.from_edges([[1]], [1, 2]), DataError, "one entry for each edge"),
    (lambda: Hypergraph.from_edges([[1]], ["x"]), DataError, "weights must be numbers"),
    (lambda: Hypergraph.from_edges([[1]], [np.inf]), DataError, "finite"),
    (lambda: Hypergraph.from_edges([[1], [2]], edge_names=["a", "a"]), DataError, "distinct"),
    (lambda: Hypergraph.from_dict([[1]]), DataError, "mapping"),
    (lambda: Hypergraph.from_dict({"a": [1]}, {"b": 1}), DataError, "'b', which is not an edge"),
    (lambda: Hypergraph.from_incidence(np.ones(3)), DataError, "two dimensions"),
    (lambda: Hypergraph.from_incidence([[1, -1]]), DataError, "vertex 0 is -1 times in edge 1"),
    (lambda: Hypergraph.from_incidence([[np.nan]]), DataError, "finite"),
    (lambda: Hypergraph.from_incidence([["x"]]), DataError, "numbers"),
    (lambda: Hypergraph.from_incidence(np.eye(2), vertex_names=["a"]), DataError, "2 entries"),
    (lambda: next(Hypergraph.from_incidence([[0.5]]).edges()), DataError, "shares"),
    (lambda: Hypergraph.from_edges([[1], [2, 3]]).to_tensor(), DataError, "one size"),
    (lambda: Hypergraph.from_edges([[pd.NA, 1]]), DataError, "missing"),
    (lambda: Hypergraph.from_edges([np.array(3)]), DataError, "edge 0"),
    (lambda: Hypergraph.from_edges(pd.DataFrame([[1]])), DataError, "from_incidence"),
    (lambda: Hypergraph.from_edges([[0, 1]], vertices=-3), DataError, "vertices must be"),
    (lambda: Hypergraph.from_edges([[0, 1]], vertices=5.0), DataError, "vertices must be"),
    (lambda: Hypergraph.from_incidence(np.eye(2) * 1j), DataError, "complex"),
    (lambda: Hypergraph.from_incidence(sparse.eye_array(2, dtype=complex)), DataError, "real numbers"),
    (lambda: Hypergraph.from_edges([[1]], edge_names=5), DataError, "edge_names must be a sequence"),
    (lambda: Hypergraph.from_incidence(np.eye(2), vertex_names=[np.nan, 1]), DataError, "missing"),
    (lambda: Hypergraph.from_tensor("abc"), DataError, "numbers"),
    (lambda: Hypergraph.from_tensor(np.random.default_rng(0).random((3, 3, 3))), DataError, "half-symmetric"),
    (lambda: Hypergraph.from_edges([[0]], np.ma.masked_array([1.0], [1])), DataError, "weights is a masked array"),
    (lambda: Hypergraph.from_tensor(np.full((2, 2), np.nan)), DataError, "finite"),
    (lambda: Hypergraph.from_edges([[1]]).edge("x"), ParameterError, "no edge 'x'"),
    (lambda: Hypergraph.from_edges([[1]]).edge([1]), ParameterError, "no edge"),
    (lambda: Hypergraph.from_edges([[1]]).restricted([0, 99]), ParameterError, "vertices must be"),
    (lambda: Hypergraph.from_edges([[1]]).restricted(["a"]), ParameterError, "vertices must be"),
    (lambda: Hypergraph.from_edges([[1]]).restricted([0, 0]), ParameterError, "vertices must be"),
    (lambda: Hypergraph.from_edges([[1]]).restricted(np.ones(7, dtype=bool)), ParameterError, "vertices must be"),
    (lambda: hash(Hypergraph.from_edges([[1]])), TypeError, "unhashable"),
)


def test_empty():
    hypergraph = Hypergraph.from_edges([])
    assert (hypergraph.n_vertices, hypergraph.n_edges) == (0, 0)
    assert repr(hypergraph) == "Hypergraph(0 vertices, 0 edges, 0 incidences)"
    assert hypergraph.components().tolist() == []
    assert Hypergraph.from_edges([], vertices=3).isolated().all()
