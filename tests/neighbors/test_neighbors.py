import pickle
import signal
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from biclique.exceptions import DataError, MissingExtraError, ParameterError
from biclique.gram.sparse import NeighborGram
from biclique.neighbors import pairs
from biclique.neighbors.index import EXACT_SECONDS, NeighborIndex, exact_seconds, uses_tree, without_loops
from biclique.neighbors.pairs import Bounds, PairSearch
from tests.oracles import nearest_rows, neighbor_affinity, neighbor_cross


def rows(n=60, d=3, dtype=np.float64, shift=0.0, copies=0):
    X = np.random.default_rng(n + d).normal(size=(n, d)) + shift
    if copies:
        X[5 : 5 + copies] = X[3]
    X = X.astype(dtype)
    X.flags.writeable = False
    return X


def lattice(n=150, d=3):
    """Whole numbers: many ties, many equal rows."""
    X = np.random.default_rng(d).integers(0, 4, size=(n, d)).astype(float)
    X.flags.writeable = False
    return X


def index_of(X, kind, **options):
    """An index that searches in a given way, whatever the shape."""
    index = NeighborIndex(X, search="approximate" if kind == "approximate" else "exact", **options)
    if kind != "approximate":
        index.search_ = kind
    return index


DATA = {
    "plain": rows(),
    "float32": rows(dtype=np.float32),
    "line": rows(d=1),
    "plane": rows(d=2),
    "wide": rows(d=30),
    "far": rows(shift=1e5),
    "far float32": rows(shift=1e5, dtype=np.float32),
    "copies": rows(copies=12),
    "lattice": lattice(60),
    "few": rows(n=4),
    "one": rows(n=1),
}


@pytest.mark.parametrize("kind", ["tree", "brute"])
@pytest.mark.parametrize("name", DATA)
def test_exact_search_is_the_definition(name, kind):
    X = DATA[name]
    k = min(8, len(X))
    gap, near = index_of(X, kind).query(None, 8)
    assert gap.shape == near.shape == (len(X), k)
    assert gap.dtype == np.float64
    assert near.dtype == np.intp
    for i, x in enumerate(X):
        order, gaps = nearest_rows(x, X, own=i)
        assert near[i].tolist() == order[:k]
        np.testing.assert_allclose(gap[i], [gaps[j] for j in order[:k]], rtol=1e-14)
    assert (near[:, 0] == np.arange(len(X))).all()
    assert (gap[:, 0] == 0).all()


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", ["tree", "brute"])
def test_equally_near_rows_come_by_their_place_in_an_order(kind, stored):
    if kind == "tree" and stored is sparse.csr_array:
        return
    X = lattice(60)
    order = np.random.default_rng(0).permutation(60)
    index, in_order = index_of(stored(X), kind, order=order), X[order]
    near = index.query(None, 8)[1]
    for place, i in enumerate(order):
        assert near[i].tolist() == order[nearest_rows(X[i], in_order, own=place)[0][:8]].tolist()
    Y = X[:20] + 0.5
    near = index.query(stored(Y), 8)[1]
    for y, found in zip(Y, near, strict=True):
        assert found.tolist() == order[nearest_rows(y, in_order)[0][:8]].tolist()
    radii = np.random.default_rng(1).uniform(0.5, 2, 60)
    assert set(zip(*index.within(stored(Y), 8, radii), strict=True)) == set(
        zip(*np.nonzero(cdist(Y, X) <= radii), strict=True)
    )
    few, certain = index.nearest_set(stored(X + 0.1 * rows(60)), 1, 1e-9, 0.0)
    assert certain.any()
    assert (few[certain, 0] == index.query(stored(X + 0.1 * rows(60)), 1)[1][certain, 0]).all()


@pytest.mark.parametrize("d", [2, 8, 150])
@pytest.mark.parametrize("kind", ["tree", "brute"])
def test_exact_search_of_more_rows(kind, d):
    X = np.random.default_rng(d).normal(size=(1500, d)).astype(np.float32)
    Y = np.random.default_rng(1).normal(size=(200, d))
    gap, near = index_of(X, kind).query(Y, 11)
    truth = cdist(Y, X.astype(float))
    np.testing.assert_array_equal(near, np.argsort(truth, axis=1, kind="stable")[:, :11])
    np.testing.assert_allclose(gap, np.sort(truth, axis=1)[:, :11], rtol=1e-12)


def test_leading_directions_do_not_change_the_answer(monkeypatch):
    monkeypatch.setattr(pairs, "DIRECTED_ROWS", 1000)
    random = np.random.default_rng(0)
    X = (random.normal(size=(1500, 6)) @ random.normal(size=(6, 80)) + 0.05 * random.normal(size=(1500, 80))) * 1e-30
    search, own = PairSearch(X), np.arange(1500)
    assert search._rough.directions.shape[1] < 80 / 3
    gap, near = search.nearest(X, own, 9)
    search._rough = Bounds(X, np.float64)
    for found, again in zip((gap, near), search.nearest(X, own, 9), strict=True):
        np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("kind", ["tree", "brute"])
@pytest.mark.parametrize("name", [*DATA, "sparse", "more", "mixed scales"])
@pytest.mark.parametrize("k", [1, 7])
def test_sets_of_nearest_rows_are_certain_only_if_they_are(name, kind, k):
    random = np.random.default_rng(0)
    more = {
        "sparse": sparse.csr_array(np.where(random.random((90, 20)) < 0.3, random.random((90, 20)), 0.0)),
        "more": random.normal(size=(3000, 5)),
        "mixed scales": np.concatenate([random.normal(size=(80, 3)), 1e6 * random.normal(size=(3, 3))]),
    }
    X = more[name] if name in more else DATA[name]
    if kind == "tree" and sparse.issparse(X):
        return
    k, whole = min(k, X.shape[0]), X.toarray() if sparse.issparse(X) else X.astype(float)
    Y = whole[:60] + 0.1 * random.normal(size=(min(60, len(whole)), X.shape[1]))
    Y[::9] = whole[: len(Y[::9])]
    near, certain = index_of(X, kind).nearest_set(sparse.csr_array(Y) if sparse.issparse(X) else Y, k, 1e-9, 1e-8)
    assert near.shape == (len(Y), k)
    if name in ("plain", "wide", "more", "sparse"):
        assert certain.mean() > 0.95
    gaps = cdist(Y, whole)
    for i in np.flatnonzero(certain):
        own = np.isin(np.arange(len(whole)), near[i])
        assert own.sum() == k
        assert gaps[i, ~own].min(initial=np.inf) > gaps[i, own].max() * (1 + 1e-9) + 1e-8


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_rows_that_float32_cannot_tell_apart(scale):
    """Tight groups far from each other, and new rows far outside: the float32 bounds leave too many pairs."""
    random = np.random.default_rng(0)
    X = (np.repeat(random.normal(size=(3, 12)), 300, axis=0) + 1e-7 * random.normal(size=(900, 12))) * scale
    Y = np.concatenate([X[::50], X[:3] * 1e22])
    truth = cdist(Y, X)
    gap, near = index_of(X, "brute").query(Y, 5)
    np.testing.assert_array_equal(near[:-3], np.argsort(truth, axis=1, kind="stable")[:-3, :5])
    np.testing.assert_allclose(gap, np.sort(truth, axis=1)[:, :5], rtol=1e-9)


@pytest.mark.parametrize("kind", ["tree", "brute"])
@pytest.mark.parametrize("X", [rows(200, 4), lattice(), rows(200, 4, copies=40)], ids=["plain", "lattice", "copies"])
def test_balls_that_hold_a_new_row(kind, X):
    random = np.random.default_rng(1)
    Y = np.concatenate([X[:20], X[:20] + 0.1 * random.normal(size=(20, X.shape[1]))])
    index = index_of(X, kind)
    radii = index.query(None, 5)[0][:, -1] * random.choice([1.0, 6.0], size=len(X), p=[0.9, 0.1])
    first, second = index.within(Y, 5, radii)
    found = np.zeros((len(Y), len(X)))
    np.add.at(found, (first, second), 1)
    truth = np.array([np.array(nearest_rows(y, X)[1]) <= radii for y in Y])
    np.testing.assert_array_equal(found, truth)
    assert (np.diff(first) >= 0).all()


@pytest.mark.parametrize("kind", ["tree", "brute"])
def test_the_last_digit_of_a_radius_loses_no_row(kind):
    """A radius is a distance, and may be rounded otherwise: on another CPU, or from the other end."""
    X = rows(200, 4)
    index = index_of(X, kind)
    radii = index.query(None, 50)[0][:, -1]
    truth = index.within(X, 5, radii)
    assert (np.bincount(truth[1]) == 50).all()
    for rounded in (np.nextafter(radii, 0), radii * (1 - 1e-14), radii * (1 + 1e-14)):
        for found, expected in zip(index.within(X, 5, rounded), truth, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.once
def test_approximate_search():
    pytest.importorskip("faiss", reason="the extra [neighbors] is not installed")
    X = np.random.default_rng(0).normal(size=(5000, 20)).astype(np.float32) + 100
    X[10:40] = X[9]
    near = index_of(X, "brute").query(None, 10)[1]
    index = index_of(X, "approximate")
    rough_gap, rough = index.query(None, 10)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near, rough, strict=True)])
    assert recall >= 0.95
    assert (rough[:, 0] == np.arange(5000)).all()
    assert (rough_gap[:, 0] == 0).all()
    assert (np.diff(rough_gap, axis=1) >= 0).all()
    assert all(len(set(row)) == 10 for row in rough)
    for again in (pickle.loads(pickle.dumps(index)), index_of(X, "approximate", n_jobs=1)):
        np.testing.assert_array_equal(again.query(None, 10)[1], rough)


def test_approximate_search_of_few_rows():
    pytest.importorskip("faiss", reason="the extra [neighbors] is not installed")
    X = rows(30, 4, copies=15)
    np.testing.assert_allclose(index_of(X, "approximate").query(None, 40)[0], index_of(X, "brute").query(None, 40)[0])


def test_the_rule_for_auto(monkeypatch):
    assert NeighborIndex(rows(60, 2)).search_ == "tree"
    assert NeighborIndex(rows(60, 40)).search_ == "brute"
    assert NeighborIndex(sparse.csr_array(rows(60, 2))).search_ == "brute"
    assert [uses_tree(n, 3) for n in (1000, 4000, 10**6)] == [False, True, True]
    assert not uses_tree(10**6, 17)
    assert exact_seconds(70_000, 784) < EXACT_SECONDS < exact_seconds(10**6, 50)
    monkeypatch.setattr("biclique.neighbors.index.EXACT_SECONDS", 0.0)
    monkeypatch.setattr("biclique.neighbors.index.find_spec", lambda name: None)
    assert NeighborIndex(rows(60, 40)).search_ == "brute"
    monkeypatch.setattr("biclique.neighbors.index.find_spec", lambda name: object())
    assert NeighborIndex(rows(60, 40)).search_ == "approximate"


def test_a_missing_extra_names_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[neighbors\]'"):
        NeighborIndex(rows(), search="approximate").query(None, 3)


def test_progress_is_told():
    for kind in ("tree", "brute"):
        shares = []
        index_of(rows(), kind).query(None, 3, shares.append)
        assert shares[-1] == 1.0
    shares = []
    gram = NeighborGram.from_rows(rows(), 3, tick=shares.append)
    told = len(shares)
    gram.cross(rows())
    assert told == len(shares) > 0


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("n_neighbors", [1, 4, 10])
def test_the_gram_matrix_is_the_definition(name, n_neighbors):
    X = DATA[name]
    gram = NeighborGram.from_rows(X, n_neighbors)
    truth = neighbor_affinity(X, n_neighbors)
    np.testing.assert_allclose(gram.K.toarray(), truth, rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(gram.diagonal(), 1)
    assert gram.K.indices.dtype == np.int32
    assert abs(gram.K - gram.K.T).max() == 0
    np.testing.assert_allclose(gram.matmat(np.eye(len(X))), truth, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("kind", ["tree", "brute", "copies", "lattice"])
def test_new_rows_are_the_definition(kind):
    X = {"copies": rows(50, 3, copies=14), "lattice": lattice(60)}.get(kind, rows(50, 3 if kind == "tree" else 30))
    Y = X[:6] + 0.2 * np.random.default_rng(1).normal(size=(6, X.shape[1]))
    cross = NeighborGram.from_rows(X, 9).cross(Y)
    truth = np.array([neighbor_cross(y, X, 9) for y in Y])
    np.testing.assert_allclose(cross.matmat(np.eye(len(X))), truth, rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(cross.diagonal(), 1)


def block(gram, Y):
    """κ(y, x_j) of new rows against the training rows."""
    return gram.cross(Y).matmat(np.eye(gram.n))


@pytest.mark.parametrize("name", DATA)
def test_training_rows_get_their_own_row(name):
    """For equal rows the first one's: which of them comes again cannot be told."""
    X = DATA[name]
    gram = NeighborGram.from_rows(X, 7)
    first = np.array([next(j for j in range(len(X)) if (X[j] == x).all()) for x in X])
    np.testing.assert_array_equal(block(gram, X), gram.K.toarray()[first])


def test_new_rows_with_an_approximate_index():
    pytest.importorskip("faiss", reason="the extra [neighbors] is not installed")
    X = make_blobs(3000, 20, centers=8, random_state=0)[0]
    gram = NeighborGram.from_rows(X, 10, search="approximate")
    exact = NeighborGram.from_rows(X, 10, search="exact")
    assert (abs(block(gram, X) - gram.K.toarray()).max(axis=1) == 0).mean() >= 0.99
    Y = X[::10] + 0.01
    truth, rough = block(exact, Y), block(gram, Y)
    assert rough.sum() < truth.sum()  # what is left out are rows with y near them that y has 8k nearer ones than
    first, second = (truth - rough).nonzero()
    rank = np.argsort(np.argsort(cdist(Y, X), axis=1), axis=1)
    assert (rank[first, second] < 80).sum() < 0.01 * np.count_nonzero(truth)


def test_the_bits_do_not_depend_on_threads_and_survive_pickling():
    X, Y = rows(400, 12), rows(90, 12)
    one, two = (NeighborGram.from_rows(X, 8, n_jobs=jobs) for jobs in (1, 2))
    for other in (two, pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(one.K.toarray(), other.K.toarray())
        np.testing.assert_array_equal(block(one, Y), block(other, Y))
        np.testing.assert_array_equal(one.matmat(X), other.matmat(X))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("more", [0, 5])
def test_a_given_graph_is_taken_as_scikit_learn_takes_it(include_self, more):
    X = rows(80, 3, copies=4)
    G = kneighbors_graph(X, 8 + more, mode="distance", include_self=include_self)
    G = sparse.csr_matrix(G)
    if more:  # another number of entries in one row
        G = sparse.vstack([kneighbors_graph(X, 10, mode="distance", include_self=include_self)[:1], G[1:]]).tocsr()
    model = SpectralClustering(2, affinity="precomputed_nearest_neighbors", n_neighbors=8, random_state=0)
    truth = model.fit(_sorted(G)).affinity_matrix_
    np.testing.assert_array_equal(NeighborGram.from_graph(G, 8).K.toarray(), truth.toarray())


def _sorted(G):
    from sklearn.neighbors import sort_graph_by_row_values

    return sort_graph_by_row_values(G, copy=True, warn_when_not_sorted=False)


def test_a_given_graph_is_the_graph_of_rows():
    X = rows(80, 3)
    transformer = KNeighborsTransformer(n_neighbors=79, mode="distance").fit(X)
    given = NeighborGram.from_graph(transformer.transform(X), 9)
    ours = NeighborGram.from_rows(X, 9)
    Y = rows(20, 3) * 0.9
    np.testing.assert_allclose(block(given, transformer.transform(Y)), block(ours, Y), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(block(given, transformer.transform(X)), ours.K.toarray(), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_given_graph_may_be_rounded(dtype):
    """Distances from |x|² + |y|² − 2⟨x, y⟩: d(i, j) is not d(j, i), and d(i, i) is not 0."""
    X = rows(80, 3)
    eps, lengths = np.finfo(dtype).eps, np.square(X).sum(axis=1)
    noise = 4 * eps * np.random.default_rng(0).uniform(-1, 1, size=(2, 80, 80)) * (lengths + lengths[:, None])
    D, again = np.sqrt(np.maximum(cdist(X, X) ** 2 + noise, 0)).astype(dtype)
    assert (again[np.diag_indices(80)] > 0).any()
    given = NeighborGram.from_graph(_stored(D), 9)
    np.testing.assert_array_equal(block(given, _stored(again)), given.K.toarray())
    new = cdist(X + 0.1, X)  # a row that is no training row is none after rounding either
    truth, close = block(given, _stored(new)), block(given, _stored(np.sqrt(new**2 + noise[0]).astype(dtype)))
    np.testing.assert_allclose(close, truth, rtol=1e3 * eps)


def _stored(D):
    """A graph with every entry stored, zeros too."""
    n, m = D.shape
    return sparse.csr_array((D.ravel(), np.tile(np.arange(m), n), np.arange(0, n * m + 1, m)), shape=D.shape)


def test_a_vertex_with_a_loop_alone_keeps_it():
    lonely = sparse.csr_array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    assert without_loops(lonely).toarray().tolist() == [[0, 0.5, 0], [0.5, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: NeighborIndex(sparse.eye_array(9), search="approximate"), DataError, "take search='exact'"),
        (lambda: NeighborGram.from_rows(rows(), 2.5), ParameterError, "n_neighbors must be .* got 2.5"),
        (lambda: NeighborGram.from_graph(np.eye(3), 2), DataError, "sparse .* got ndarray: .*kneighbors_graph"),
        (
            lambda: NeighborGram.from_graph(sparse.eye_array(3), 2),
            DataError,
            "n_neighbors=2, but row 0 .* only 1 stored",
        ),
        (lambda: NeighborGram.from_graph(-sparse.eye_array(3), 1), DataError, "not negative, got .*-1"),
        (lambda: NeighborGram.from_graph(sparse.eye_array(3), 1).cross(rows()), DataError, r"sparse \(n_new, 3\)"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Ties without end, and interrupts


@pytest.mark.once
@pytest.mark.parametrize("shift", [0.0, 300.0])
def test_many_ties_are_not_all_measured(shift, monkeypatch):
    n, k = 400, 4
    X = np.eye(n)
    X[8] = X[7] + 0.25 * X[9]  # two rows that are nearer than the others
    X += shift
    truth = cdist(X - shift, X - shift)
    truth[np.arange(n), np.arange(n)] = -1
    truth = np.round(truth, 12)
    measured, measure = [], pairs.distances

    def counted(X, Y, first, second):
        measured.append(len(first))
        return measure(X, Y, first, second)

    monkeypatch.setattr(pairs, "distances", counted)
    index = NeighborIndex(X, search="exact")
    gap, near = index.query(None, k)
    assert (near == np.argsort(truth, axis=1, kind="stable")[:, :k]).all()
    np.testing.assert_allclose(gap[:, 1:], np.sort(truth, axis=1)[:, 1:k], rtol=1e-9)
    assert sum(measured) < 100 * n
    measured.clear()
    assert len(index.within(X[:50], k, np.full(n, 1.5))[0]) == 50 * n
    assert sum(measured) < 100 * 50


def test_ties_far_from_the_middle_are_measured():
    # Here the rounding of products is larger than the differences: nothing may be called a tie.
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(300, 20)) * 1e-3, random.normal(size=(300, 20)) * 1e-3 + 1e5])
    near = NeighborIndex(X, search="exact").query(None, 5)[1]
    for part in (slice(0, 300), slice(300, 600)):
        own = X[part] - X[part].mean(axis=0)
        order = np.argsort(cdist(own, own), axis=1)[:, :5] + part.start
        assert (near[part] == order).mean() > 0.999


@pytest.mark.once
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interrupt_in_the_search_leaves_the_process_whole():
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    some = X[:3000]
    index = NeighborIndex(X, search="exact", n_jobs=2)
    assert index.search_ == "tree"
    before = index.query(some, 10)

    def stop(*_):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, stop)
    try:
        for seconds in (0.05, 0.2):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            with pytest.raises(KeyboardInterrupt):
                index.query(X, 40)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    after = index.query(some, 10)
    assert np.array_equal(before[0], after[0])
    assert np.array_equal(before[1], after[1])
