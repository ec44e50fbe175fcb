"""The estimators on neighbour graphs: curved shapes, parts, new rows, given graphs."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.exceptions import DataError, DisconnectedWarning, FewerClustersWarning, MemoryLimitError, ParameterError
from biclique.gram import NEIGHBOR_WEIGHTS, NeighborGram
from biclique.spectral import ASSIGNERS, OrderRule


def fitted(X, n_clusters=2, **parameters):
    settings = {"affinity": "nearest_neighbors", "random_state": 0, **parameters}
    return BicliqueSpectralClustering(n_clusters, **settings).fit(X)


def spirals(n=3000, seed=0):
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], n // 3)
    t = np.sqrt(random.uniform(0.05, 1, len(y))) * 3 * np.pi
    angle = t + y * 2 * np.pi / 3
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)]) + random.normal(scale=0.08, size=(len(y), 2))
    return X, y


SHAPES = {
    "moons": (*make_moons(2000, noise=0.08, random_state=0), 2),
    "circles": (*make_circles(2000, noise=0.05, factor=0.5, random_state=0), 2),
    "spirals": (*spirals(), 3),
    "blobs": (*make_blobs(1500, n_features=10, centers=4, random_state=0), 4),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weights", ["auto", *NEIGHBOR_WEIGHTS])
def test_curved_shapes(shape, weights):
    X, y, k = SHAPES[shape]
    X.setflags(write=False)
    model = fitted(X, k, neighbor_weights=weights)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert model.gram_ == "neighbors"
    assert "search for neighbours" in model.gram_reason_
    assert model.order_ in (2.0, 2.1)
    assert (model.gamma_ is not None) == (weights in ("auto", "rbf"))
    assert np.array_equal(model.predict(X), model.labels_)
    assert model.embedding_.shape == (len(X), k)


def test_digits_without_labels():
    X, y = load_digits(return_X_y=True)
    assert normalized_mutual_info_score(y, fitted(X, 10).labels_) > 0.85


@pytest.mark.parametrize("shape", ["moons", "blobs"])
def test_new_rows(shape):
    X, y, k = SHAPES[shape]
    half = np.random.default_rng(0).permutation(len(X))
    train, test = half[: len(X) // 2], half[len(X) // 2 :]
    model = fitted(X[train], k)
    assert adjusted_rand_score(y[test], model.predict(X[test])) > 0.97
    # Rows next to training rows are embedded next to them.
    moved = X[train[:200]] + 1e-9
    np.testing.assert_allclose(
        model.transform(moved), model.embedding_[:200], atol=0.2 * np.abs(model.embedding_).max()
    )
    assert (model.predict(moved) == model.labels_[:200]).mean() > 0.99


@pytest.mark.parametrize("shape", ["moons", "circles", "spirals"])
def test_the_closed_form_gives_training_rows_their_labels(shape):
    X, _, k = SHAPES[shape]
    model = fitted(X, k)
    # Without looking rows up: reverse edges make the new row's similarities those of the training row.
    unknown = np.full(len(X), -1)
    assert np.array_equal(model._fitted.labels_of_vertices(X, unknown), model.labels_)
    np.testing.assert_allclose(model._fitted.embed_vertices(X, unknown), model.embedding_, atol=1e-6)


def test_training_rows_keep_their_labels_with_an_approximate_index(monkeypatch):
    pytest.importorskip("faiss")
    X, _, k = SHAPES["blobs"]
    made = NeighborGram.from_rows
    monkeypatch.setattr(
        NeighborGram, "from_rows", classmethod(lambda cls, *a, **o: made(*a, **{**o, "search": "approximate"}))
    )
    model = fitted(X, k)
    assert model.gram_reason_ == "approximate search for neighbours"
    again = model._fitted.labels_of_vertices(X, np.full(len(X), -1))
    assert (again == model.labels_).mean() >= 0.99


@pytest.mark.parametrize("assign", sorted(ASSIGNERS))
def test_every_assigner(assign):
    X, y, k = SHAPES["spirals"]
    model = fitted(X, k, assign_labels=assign)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert np.array_equal(model.predict(X), model.labels_)
    assert hasattr(model, "cut_history_") == (assign == "kernel_kmeans")


def test_order_two_where_the_order_would_lift_an_eigenvalue():
    X, y = make_moons(20_000, noise=0.08, random_state=0)
    model = fitted(X)
    assert model.order_ == 2.0
    assert adjusted_rand_score(y, model.labels_) > 0.99
    asked = fitted(X, order=2.1)
    assert asked.order_ == 2.1
    assert asked.eigenvalues_[0] > 1  # what no cut has
    assert model.eigenvalues_[0] <= 1
    assert model.residuals_[0] < 1e-5
    blobs = fitted(SHAPES["blobs"][0], 4, n_neighbors=200)
    assert blobs.order_ in (2.0, 2.1)


def test_parts_come_first_and_are_exact():
    X, y = make_circles(3000, noise=0.03, factor=0.3, random_state=0)
    model = fitted(X)
    assert model.n_passes_ == 1
    assert model.eigenvalues_.tolist() == [1.0]
    assert model.residuals_.tolist() == [0.0]
    assert adjusted_rand_score(y, model.labels_) == 1
    # Two parts and four clusters: the rest of the columns go where the eigenvalues are largest.
    four = fitted(X, 4)
    assert len(np.unique(four.labels_)) == 4
    for label in range(4):
        assert len(np.unique(y[four.labels_ == label])) == 1


def test_dust_owns_no_cluster():
    X, y = make_moons(3000, noise=0.06, random_state=0)
    dust = np.random.default_rng(0).normal(size=(5, 2)) * 0.01 + [3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # so little is not worth a word
        model = fitted(np.concatenate([X, dust]))
    assert adjusted_rand_score(y, model.labels_[:3000]) > 0.98
    assert len(np.unique(model.labels_[3000:])) == 1


def test_more_parts_than_clusters_are_said():
    X, y = make_blobs(900, centers=[[0, 0], [0, 8], [60, 0], [60, 8]], cluster_std=0.5, random_state=0)
    with pytest.warns(
        DisconnectedWarning, match=r"falls into 4 connected parts .* more than the 2 that were asked for"
    ):
        model = fitted(X, 2)
    assert adjusted_rand_score(y // 2, model.labels_) == 1
    # Parts of one size too: whole, and the nearest together.
    random = np.random.default_rng(0)
    squares = np.concatenate([random.uniform(-3, 3, (400, 2)) + [c, 0] for c in (0, 20, 45)])
    with pytest.warns(DisconnectedWarning):
        model = fitted(squares, 2)
    assert adjusted_rand_score(np.repeat([0, 0, 1], 400), model.labels_) == 1


def test_small_clusters_far_away_are_clusters():
    random = np.random.default_rng(0)
    for bulk, far in ((random.uniform(size=(5000, 2)), 60), (random.normal(size=(20_000, 2)), 150)):
        X = np.concatenate([bulk, random.normal(size=(far, 2)) + 30])
        model = fitted(X)
        assert sorted(np.bincount(model.labels_).tolist()) == [far, len(bulk)]


@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_noise_owns_no_cluster(noise, seed):
    random = np.random.default_rng(seed)
    for (X, y), k in (
        (make_blobs(1000, centers=[[0, 0], [6, 0], [0, 6]], random_state=seed), 3),
        (make_moons(1000, noise=0.05, random_state=seed), 2),
    ):
        middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2
        outside = random.uniform(middle - 3 * half, middle + 3 * half, (int(noise * 1000), 2))
        labels = fitted(np.concatenate([X, outside]), k).labels_
        assert adjusted_rand_score(y, labels[:1000]) > 0.97


def test_weights_decide_what_is_dust():
    random = np.random.default_rng(0)
    X = np.concatenate([random.uniform(size=(2000, 2)), random.uniform(size=(8, 2)) * 0.01 + 30])
    weights = np.r_[np.ones(2000), np.full(8, 1000.0)]
    model = BicliqueSpectralClustering(2, affinity="nearest_neighbors", n_neighbors=5, random_state=0)
    labels = model.fit(X, sample_weight=weights).labels_
    assert sorted(np.bincount(labels).tolist()) == [8, 2000]


def test_rows_that_are_like_no_training_row():
    X, _ = make_moons(400, noise=0.05, random_state=0)
    model = fitted(np.concatenate([X[::2], X[::2] + 30]))
    near, far = model.labels_[0], model.labels_[-1]
    with_warning = model.predict([[-60.0, -60], [-10, -10], [-5, -5], [90, 90]]).tolist()
    assert with_warning == [near, near, near, far]


def test_a_given_graph():
    X, y, _ = SHAPES["moons"]
    graph = kneighbors_graph(X, 10, mode="distance", include_self=True)
    given = fitted(graph, affinity="precomputed_nearest_neighbors")
    assert (
        np.array_equal(given.labels_, fitted(X).labels_)
        or adjusted_rand_score(given.labels_, fitted(X).labels_) > 0.999
    )
    transformer = KNeighborsTransformer(n_neighbors=10, mode="distance").fit(X)
    assert adjusted_rand_score(given.predict(transformer.transform(X[:300])), y[:300]) > 0.97
    assert given.gram_reason_ == "the graph is given"
    theirs = SpectralClustering(2, affinity="precomputed_nearest_neighbors", n_neighbors=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # its graph is not connected
        theirs.fit(graph)
    assert adjusted_rand_score(theirs.labels_, given.labels_) > 0.98
    with pytest.raises(DataError, match="needs a square matrix of distances"):
        fitted(X, affinity="precomputed_nearest_neighbors")
    with pytest.raises(DataError, match="n_neighbors=11, but row 0"):
        fitted(graph, affinity="precomputed_nearest_neighbors", n_neighbors=11)


def test_parts_of_a_given_graph_are_grouped():
    X = make_blobs(900, centers=[[0, 0], [0, 30], [60, 0], [60, 30]], cluster_std=0.5, random_state=0)[0]
    graph = kneighbors_graph(X, 10, mode="distance", include_self=True)
    with pytest.warns(DisconnectedWarning, match="falls into 4 connected parts .* more than the 2"):
        model = fitted(graph, affinity="precomputed_nearest_neighbors")
    assert sorted(np.bincount(model.labels_).tolist()) == [450, 450]


@pytest.mark.once
def test_agrees_with_scikit_learn_at_order_two():
    X, _, k = SHAPES["spirals"]
    theirs = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # its graph is not connected
        labels = theirs.fit_predict(X)
    assert adjusted_rand_score(labels, fitted(X, k, order=2, neighbor_weights="connectivity").labels_) > 0.99


def test_repeated_rows_and_weights():
    X, y, _ = SHAPES["moons"]
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    repeated = fitted(np.repeat(X, counts, axis=0))
    weighted = BicliqueSpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(X, sample_weight=counts)
    np.testing.assert_allclose(repeated.eigenvalues_, weighted.eigenvalues_, atol=1e-8)
    assert np.array_equal(repeated.labels_, np.repeat(weighted.labels_, counts))
    some = counts > 1
    part = BicliqueSpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(X, sample_weight=1.0 * some)
    assert len(part.labels_) == len(X)
    assert adjusted_rand_score(y, part.labels_) > 0.97
    # A hundred copies of each row: neighbours are counted among distinct rows.
    copies = fitted(np.repeat(X[:400], 30, axis=0))
    assert adjusted_rand_score(np.repeat(y[:400], 30), copies.labels_) > 0.97


def test_reproducible_and_kept():
    X, _, k = SHAPES["blobs"]
    first, second = fitted(X, k, n_jobs=1), fitted(X, k, n_jobs=2)
    assert np.array_equal(first.embedding_, second.embedding_)
    assert np.array_equal(first.labels_, second.labels_)
    again = pickle.loads(pickle.dumps(first))
    assert np.array_equal(again.predict(X), first.labels_)
    assert clone(first).get_params() == first.get_params()


@pytest.mark.parametrize("solver", ["auto", "amg", "krylov", "arpack", "lobpcg"])
def test_solvers_agree(solver):
    X, y, k = SHAPES["blobs"]
    model = fitted(X[:800], k, n_neighbors=40, eigen_solver=solver, eigen_tol=1e-6, max_iter=500)
    assert adjusted_rand_score(y[:800], model.labels_) == 1


@pytest.mark.parametrize("solver", ["auto", "krylov", "arpack", "lobpcg"])
def test_the_tolerance_means_the_same_to_every_solver(solver):
    X, y = make_blobs(500, random_state=30)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert adjusted_rand_score(y, fitted(X, 3, eigen_solver=solver).labels_) > 0.95


def test_the_embedding():
    X, _ = make_moons(2000, noise=0.15, random_state=0)
    model = BicliqueSpectralEmbedding(2, affinity="nearest_neighbors", random_state=0).fit(X)
    assert model.embedding_.shape == (2000, 2)
    np.testing.assert_allclose(model.transform(X), model.embedding_)
    X, y, _ = SHAPES["circles"]
    embedding = BicliqueSpectralEmbedding(1, affinity="nearest_neighbors", random_state=0).fit(X)
    assert embedding.embedding_.shape == (2000, 1)
    assert adjusted_rand_score(y, embedding.embedding_[:, 0] > 0) == 1  # the second part's own column


def test_sparse_rows():
    X, y, k = SHAPES["blobs"]
    held = fitted(sparse.csr_matrix(X), k)
    assert np.array_equal(held.predict(X[:50]), held.predict(sparse.csr_matrix(X[:50])))
    assert np.array_equal(fitted(X, k).predict(sparse.csr_matrix(X[:50] + 1e-3)), fitted(X, k).predict(X[:50] + 1e-3))
    assert adjusted_rand_score(y, held.labels_) > 0.98
    assert np.array_equal(held.predict(sparse.csr_matrix(X)), held.labels_)


def test_few_rows():
    X = make_blobs(12, centers=2, random_state=0)[0]
    for n in (2, 3, 5, 12):
        model = fitted(X[:n], 2)
        assert set(model.labels_.tolist()) == {0, 1}
    with pytest.warns(FewerClustersWarning, match="X has only 1 distinct rows"):
        assert fitted(np.ones((50, 3)), 2).labels_.tolist() == [0] * 50
    with pytest.warns(FewerClustersWarning, match="X has only 5 distinct rows"):
        assert len(np.unique(fitted(np.repeat(X[:5], 9, axis=0), 8).labels_)) == 5


def test_what_cannot_be():
    X, _, _ = SHAPES["moons"]
    for parameters, message in [
        ({"neighbor_weights": "heat"}, "neighbor_weights must be one of 'auto', 'connectivity', 'rbf', 'self_tuning'"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1"),
        ({"modelling": "symmetric"}, "modelling='symmetric' works with kernels"),
        ({"gamma": "median"}, "gamma must be 'auto' or a number with affinity='nearest_neighbors'"),
        ({"n_neighbors": 2001}, "n_neighbors=2001 is more than the 2000 distinct rows"),
        ({"row_normalize": 2}, "row_normalize must be True or False"),
    ]:
        with pytest.raises(ParameterError, match=message):
            fitted(X, **parameters)
    with pytest.raises(ParameterError, match="works with BicliqueSpectralClustering"):
        BicliqueKernelKMeans(2, affinity="nearest_neighbors").fit(X)
    with pytest.raises(MemoryLimitError, match="affinity='nearest_neighbors' for 2000 distinct rows and 10 neighbours"):
        fitted(X, memory_limit="1MB")


def unequal_clusters(seed, sizes=(850, 100, 50)):
    """Round clusters of these sizes, 6 to 8 deviations apart."""
    random = np.random.default_rng(seed)
    centres = [(0, 0), (7, 0), (0, 7), (7, 7)][: len(sizes)]
    X = np.concatenate([random.normal(size=(n, 2)) + c for n, c in zip(sizes, centres, strict=True)])
    return X, np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.once
@pytest.mark.parametrize("sizes", [(850, 100, 50), (700, 200, 70, 30), (950, 50)])
@pytest.mark.parametrize("seed", range(3))
def test_small_clusters_beside_large_ones_are_found(sizes, seed):
    X, y = unequal_clusters(seed, sizes)
    model = fitted(X, len(sizes))
    assert model.order_ == 2.0
    assert adjusted_rand_score(y, model.labels_) > 0.98


def test_the_order_is_raised_where_a_cluster_would_be_dust():
    random = np.random.default_rng(0)
    two = [random.normal(size=(200, 2)), random.normal(size=(200, 2)) + [3, 0]]
    X = np.concatenate([*two, [1.5, 5] + 0.2 * random.normal(size=(10, 2))])  # √(410/2) = 14.3 rows are needed
    model = fitted(X, 2, n_neighbors=15)
    assert model.order_ == 2.1
    assert model.order_reason_ == (
        "order 2: smallest cluster 10 of 410 rows; order 2.1: smallest cluster 189 of 410 rows (14.3 rows needed)"
    )
    assert np.bincount(fitted(X, 2, n_neighbors=15, order=2).labels_).min() == 10
    assert np.bincount(model.labels_).min() == 189
    # The labels are those by which the order was tested, whoever asks for them.
    assert np.array_equal(fitted(X, 2, n_neighbors=15, order=2.1).labels_, model.labels_)


def test_an_order_that_lifts_an_eigenvalue_is_refused(monkeypatch):
    X, _ = make_moons(20_000, noise=0.08, random_state=0)
    # As if order 2 left an empty cluster, and 2.1 did not.
    sizes = iter([0.0, 0.5])
    monkeypatch.setattr(OrderRule, "smallest", lambda *_: next(sizes))
    model = fitted(X)
    assert "order 2.1: an eigenvalue above 1, which no cut has" in model.order_reason_
    assert model.order_ == 2.0
