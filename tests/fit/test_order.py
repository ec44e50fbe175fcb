"""The order chosen by the data, parts, and given matrices: right by default."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, make_blobs, make_circles, make_moons
from sklearn.feature_extraction.image import img_to_graph
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import scale

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.exceptions import ApproximationWarning, BicliqueWarning, DisconnectedWarning, FewerClustersWarning
from biclique.fit import exact as _spectrum
from biclique.fit import low_rank as _low_rank
from biclique.fit import three_passes as _factored
from biclique.fit.holding import Prepared
from biclique.fit.sifting import may_leave_out
from biclique.gram import DenseGram
from biclique.kernels import RBF
from biclique.rows.array import Vertices
from biclique.spectral import cut as _order
from biclique.spectral.cut import ORDERS, SYMMETRIC_ORDERS, OrderRule
from tests.oracles import joined_parts, least_order_without_dust, rows_left_out


def unequal(seed, sizes=(900, 80, 20)):
    random = np.random.default_rng(seed)
    centres = ((0, 0), (6, 6), (6, -6))
    X = np.concatenate([random.normal(size=(n, 2)) + c for n, c in zip(sizes, centres, strict=True)])
    return X, np.repeat(range(3), sizes)


def with_outliers(seed, n=950, share=0.05):
    X, y = make_blobs(n, centers=[[0, 0], [6, 0], [3, 5]], random_state=seed)
    middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2
    noise = np.random.default_rng(seed).uniform(middle - 3 * half, middle + 3 * half, (int(share * n), 2))
    return np.concatenate([X, noise]), y


def fitted(X, k, **parameters):
    return BicliqueSpectralClustering(k, **{"random_state": 0, **parameters}).fit(X)


def agreement(y, model):
    return adjusted_rand_score(y, model.labels_[: len(y)])


# The default is right


@pytest.mark.parametrize("seed", range(10))
def test_clusters_of_very_unequal_size(seed):
    X, y = unequal(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # three parts and three clusters: nothing to say
        assert agreement(y, fitted(X, 3)) >= 0.99
    for n_neighbors in (10, 20):
        assert agreement(y, fitted(X, 3, affinity="nearest_neighbors", n_neighbors=n_neighbors)) >= 0.99


def test_outliers_own_no_cluster():
    scores = [agreement(y, fitted(X, 3)) for X, y in (with_outliers(seed) for seed in range(10))]
    assert np.mean(scores) >= 0.95


@pytest.mark.once
@pytest.mark.parametrize(("make", "noise"), [(make_circles, 0.05), (make_moons, 0.05)])
def test_curved_shapes(make, noise):
    X, y = make(1000, noise=noise, random_state=0, **({"factor": 0.5} if make is make_circles else {}))
    assert agreement(y, fitted(scale(X), 2)) == 1


# By its definition

TABLES = {
    "breast cancer": (scale(load_breast_cancer().data)[:300], 2),
    "overlapping": (make_blobs(200, centers=4, cluster_std=2.5, random_state=5)[0], 4),
    "heavy tails": (np.random.default_rng(1).standard_t(2, size=(250, 2)), 3),
    "outliers": (with_outliers(3, 200)[0], 3),
    "many outliers": (with_outliers(3, 200, share=0.2)[0], 3),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("gram", ["dense", "tiled"])
def test_the_order_is_the_least_without_dust(name, gram):
    X, k = TABLES[name]
    gamma = 0.02 if name == "breast cancer" else 0.1  # so wide that there are no parts
    model = fitted(X, k, gamma=gamma, gram=gram)
    K = rbf_kernel(X, gamma=gamma)
    assert model.order_ == least_order_without_dust(K, k)
    left_out = rows_left_out(K, k) if model.order_ == 2 else []
    weights = np.ones(len(X))
    weights[left_out] = 0  # which is what leaving out means
    assert sorted(model.rows_left_out_) == sorted(left_out)
    again = BicliqueSpectralClustering(k, gamma=gamma, gram=gram, order=model.order_, random_state=0)
    again.fit(X, sample_weight=weights)
    assert np.array_equal(again.labels_, model.labels_)
    assert again.order_reason_ == "as asked for"
    few = f"{len(left_out)} of {len(X)} rows, like hardly any other, left out"
    assert f"order {model.order_:g}: {few + '; ' if len(left_out) else ''}smallest cluster" in model.order_reason_
    assert (few in model.plan_.changes) == (len(left_out) > 0)
    np.testing.assert_allclose(again.embedding_, model.embedding_, atol=1e-6 if gram == "dense" else 2e-2)


def test_some_of_these_tables_need_a_higher_order():
    orders = {
        name: fitted(X, k, gamma=0.02 if name == "breast cancer" else 0.1).order_ for name, (X, k) in TABLES.items()
    }
    assert max(orders.values()) > 2


def nearly_apart(seed, n=1200):
    """Two clusters, of 95 and 5 %, with rows at their edges that are like hardly any other."""
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n * 95 // 100, n * 5 // 100])
    return random.normal(size=(n, 2)) + np.array([[0, 0], [6, 0]])[y], y


@pytest.mark.parametrize("seed", range(4))
def test_rows_nearly_apart_own_no_cluster_and_raise_no_order(seed):
    X, y = nearly_apart(seed)
    model = fitted(X, 2)
    assert model.order_ == 2
    assert agreement(y, model) > 0.95
    assert np.array_equal(model.predict(X), model.labels_)


@pytest.fixture
def two_are_dust(monkeypatch):
    """Order 2 of all rows is said to fail because of two of them, whatever the rounding of this machine."""
    run = _spectrum.ExactSearch.tried

    def told(self, order, last, most=None):
        found, dust = run(self, order, last, most)
        if order == 2 and self.prepared.vertices.n >= 1200:
            return _order.Attempt(order, 0.0, found.result), np.array([3, 700])
        return found, dust

    monkeypatch.setattr(_spectrum.ExactSearch, "tried", told)


@pytest.mark.parametrize("gram", ["dense", "tiled", "fourier"])
def test_what_is_left_out_is_as_new_rows_are(gram, two_are_dust):
    pytest.importorskip("finufft" if gram == "fourier" else "numpy")
    X, y = nearly_apart(1)
    X += [1000, -500]  # far from the origin: rows are stored centred
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(X, 2, gamma=1.0, gram=gram)
        assert "order 2: 2 of 1200 rows, like hardly any other, left out; smallest" in model.order_reason_
        assert len(model._fitted.rows) == 1198
        assert agreement(y, model) > 0.95
        assert np.array_equal(model.predict(X), model.labels_)
        assert np.array_equal(model.predict(X + 1e-9), model.labels_)
        assert np.array_equal(model.rows_left_out_, np.flatnonzero(model._fitted.find(X) < 0))
        weights = np.ones(len(X))
        weights[model.rows_left_out_] = 0
        assert weights.sum() == 1198
        again = BicliqueSpectralClustering(2, gamma=1.0, gram=gram, order=2, random_state=0).fit(
            X, sample_weight=weights
        )
        assert adjusted_rand_score(again.labels_, model.labels_) == 1


@pytest.mark.once
def test_given_matrices_leave_rows_out_too(two_are_dust):
    X, y = nearly_apart(1)
    X = np.concatenate([X, X[:40]])  # equal rows are one vertex
    K = rbf_kernel(X, gamma=1.0)
    for given in (K, sparse.csr_array(np.where(K > 1e-12, K, 0))):
        model = fitted(given, 2, affinity="precomputed")
        assert "left out" in model.order_reason_
        assert f"{len(model.rows_left_out_)} of {len(X)} rows" in model.order_reason_  # equal rows together
        assert agreement(y, model) > 0.95
        assert np.array_equal(model.predict(given), model.labels_)


@pytest.mark.parametrize("seed", [0, 6])
def test_outliers_with_faint_links_are_no_part_of_a_grid(seed):
    """Links of 1e-7 connect outliers to the rest; products that are right to 1e-6 do not see them."""
    pytest.importorskip("finufft")
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, 6000)
    X = random.normal(size=(6000, 2)) + np.array([[0, 0], [8, 0], [4, 7]])[y]
    X[:300] = random.uniform(-20, 28, (300, 2))
    model = fitted(X, 3, gram="fourier", gamma=2.3)
    assert adjusted_rand_score(y[300:], model.labels_[300:]) > 0.99


def test_a_small_cluster_is_no_dust_and_all_rows_are_back():
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [80, 15, 5])
    X = random.normal(size=(100, 10))
    X[:, 0] += 8 * y
    X[:, 1] += 6.4 * (y % 2)
    model = fitted(X, 3)  # 5 rows are nearly the 5.8 that a cluster needs
    assert agreement(y, model) == 1
    random = np.random.default_rng(1)
    X = np.concatenate([random.normal(size=(95, 1)), random.normal(size=(5, 1)) + 7])
    model = fitted(X, 2)
    assert model.order_ == 2 or len(model._fitted.rows) == 100  # at higher orders nothing is left out


def test_a_stored_matrix_leaves_rows_out_if_two_fit_the_memory():
    X = np.random.default_rng(0).normal(size=(50, 2))
    gram = DenseGram.from_kernel(RBF(1.0), X, memory_limit=10**9)
    vertices = Vertices.as_they_are(X, np.ones(50))
    for spare, possible in ((np.inf, True), (gram.bytes_for(50, 2, 0, float) - 1, False)):
        prepared = Prepared(vertices, gram, np.random.RandomState(0), kernel=RBF(1.0), spare=spare)
        assert may_leave_out(prepared) == possible


def test_where_no_order_does_the_largest_smallest_cluster_is_taken():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = fitted(X, 12, gamma=0.5)
    assert model.order_ == least_order_without_dust(rbf_kernel(X, gamma=0.5), 12)
    assert "none does" in model.order_reason_


def test_nothing_to_choose():
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert fitted(X, 1).order_ == 2
    with pytest.warns(FewerClustersWarning):
        assert fitted(np.repeat(X[:4], 10, axis=0), 5).order_ == 2


def test_weights_are_multiplicities():
    X, _ = with_outliers(1, 190)
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = BicliqueSpectralClustering(3, random_state=0).fit(X, sample_weight=counts)
    repeated = fitted(np.repeat(X, counts, axis=0), 3)
    assert weighted.order_ == repeated.order_
    assert weighted.order_reason_ == repeated.order_reason_
    assert np.array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)


def test_the_other_estimators_take_the_same_order():
    X, _ = with_outliers(4, 190)
    X = np.concatenate([X, X[:30] + 1e-3])
    model = fitted(X, 3, gamma=0.1)
    assert BicliqueSpectralEmbedding(2, gamma=0.1, random_state=0).fit(X).order_ == model.order_
    whole = BicliqueSpectralEmbedding(3, drop_first=False, gamma=0.1, random_state=0).fit(X)
    assert whole.order_reason_ == model.order_reason_
    np.testing.assert_allclose(whole.embedding_, model.embedding_)
    search = BicliqueKernelKMeans(3, gamma=0.1, random_state=0, n_init=10).fit(X)
    assert search.order_ == model.order_
    lowered = fitted(X, 3, gamma=0.1, assign_labels="kernel_kmeans")
    assert lowered.order_ == model.order_
    assert np.array_equal(search.labels_, lowered.labels_)
    for other in ({"n_init": 1}, {"assign_labels": "cluster_qr"}, {"row_normalize": False}):
        assert fitted(X, 3, gamma=0.1, **other).order_ == model.order_


def test_symmetric_orders():
    X, k = TABLES["heavy tails"]
    model = fitted(X, k, gamma=0.1, modelling="symmetric")
    assert model.order_ in (2, 3, 4)
    again = fitted(X, k, gamma=0.1, modelling="symmetric", order=int(model.order_))
    assert np.array_equal(again.labels_, model.labels_)


def test_degrees_that_are_not_positive_rule_an_order_out():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(60, 2)) + [4, 4], random.normal(size=(60, 2)) + [4, -3], [[-3.0, 0.5]]])
    model = fitted(X, 2, affinity="linear")
    assert model.order_ > 2
    assert "order 2: degrees that are not positive" in model.order_reason_


@pytest.mark.parametrize("way", [{"gram": "nystroem", "rank": 10}, {"gram": "features", "rank": 100}])
def test_a_given_order_draws_what_auto_drew(way):
    X = np.concatenate([TABLES["overlapping"][0], make_blobs(80, centers=[[500, 0], [0, 500]], random_state=0)[0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        auto = fitted(X, 2, **way)
        assert np.array_equal(fitted(X, 2, order=auto.order_, **way).labels_, auto.labels_)


def test_pivots_are_not_chosen_by_rounding():
    X = make_blobs(300, centers=3, cluster_std=2.0, random_state=3)[0]
    ask = {"assign_labels": "cluster_qr", "order": 2, "gamma": 0.1}
    plain = fitted(X, 4, **ask).labels_
    for other in (
        fitted(X, 4, gram="tiled", **ask),
        fitted(X + 1, 4, **ask),
        fitted(X, 4, eigen_solver="arpack", **ask),
    ):
        assert adjusted_rand_score(plain, other.labels_) == 1


def test_tiles_in_float64_have_the_parts_of_the_stored_matrix():
    x = [np.linspace(top, top + length, 80) for top, length in ((0, 11), (1000, 10.5), (2000, 10))]
    X = np.concatenate([*x, [2012.5, 3000, 3000.5]])[:, None]  # the first of these has a faint link
    stored, tiled = (fitted(X, 5, gamma=2.4, gram=gram, precision="float64") for gram in ("dense", "tiled"))
    assert tiled.order_ == stored.order_
    assert adjusted_rand_score(tiled.labels_, stored.labels_) > 0.95  # but for rows in the middle of a line


def test_sizes_are_told_in_rows():
    X = np.repeat(make_blobs(90, centers=3, random_state=1)[0], 4, axis=0)
    model = fitted(X, 3)
    assert f"smallest cluster {np.bincount(model.labels_).min()} of 360 rows" in model.order_reason_


# Many rows


@pytest.mark.once
@pytest.mark.parametrize("gram", ["tiled", "nystroem"])
def test_a_sample_proposes_and_all_rows_decide(gram, monkeypatch):
    X, _ = with_outliers(0, 1500)
    far = np.random.default_rng(0).normal(size=(3, 2)) * 0.01 + [400, 400]  # a sample of 300 has none of them
    X = np.concatenate([X, far])
    plain = fitted(X, 3, gram=gram, gamma=0.05)
    for module in (_order, _spectrum):
        monkeypatch.setattr(module, "TRY_ALL", 1000)
    monkeypatch.setattr(_spectrum, "PROPOSAL_ROWS", 300)
    sampled = fitted(X, 3, gram=gram, gamma=0.05)
    assert sampled.order_ >= 2
    assert adjusted_rand_score(sampled.labels_, plain.labels_) > 0.95
    assert np.bincount(sampled.labels_).min() >= np.sqrt(len(X) / 3)


def test_what_a_sample_proposes_is_scaled_to_all_rows(monkeypatch):
    """A step above 2 that a few rows ask for splits dense clusters of many: it is divided by how many more they are."""
    X, y = make_blobs([900, 80, 20], centers=[[0, 0], [6, 6], [6, -6]], random_state=0)
    monkeypatch.setattr(_spectrum, "TRY_ALL", 500)
    run = _spectrum.ExactSearch.run

    def pessimist(self, *, asked):
        if self.n == len(X):
            return run(self, asked=asked)
        return _order.Attempt(2.05, 1.0, None), "so it says"

    monkeypatch.setattr(_spectrum.ExactSearch, "run", pessimist)
    monkeypatch.setattr(_spectrum, "PROPOSAL_ROWS", 100)
    assert "a sample of 100 rows proposes 2.05 (so it says); order 2.05:" in fitted(X, 3, gram="tiled").order_reason_
    monkeypatch.setattr(_order, "SCALED_FROM", 500)
    model = fitted(X, 3, gram="tiled")
    assert "a sample of 100 rows proposes 2.05 (so it says); order 2.005: " in model.order_reason_
    assert len(model.labels_) == len(y)


def test_orders_of_very_many_rows():
    rule = OrderRule.of(np.ones(10**6), 3, ORDERS)
    n = rule.effective_rows
    assert n == pytest.approx(10**6, rel=0.01)
    np.testing.assert_allclose(rule.scaled(2, 4e-3), [2, 2.0002, 2.002, 2.02, *ORDERS[1:]], atol=1e-6)
    np.testing.assert_allclose(rule.scaled(2.5, 4e-3), [2.002, 2.02, 2.2, 2.5, 3, 4], atol=1e-6)
    assert rule.scaled(2.05, 0.9) == ORDERS[1:]
    whole = OrderRule.of(np.ones(10**6), 3, SYMMETRIC_ORDERS)
    assert whole.scaled(2, 4e-3) == SYMMETRIC_ORDERS


@pytest.mark.once
@pytest.mark.parametrize(("apart", "raised"), [(1, False), (12, False), (33, True)])  # √(n/k) is 31.8
def test_rows_that_no_landmark_sees_raise_the_order_if_they_are_many(monkeypatch, apart, raised):
    monkeypatch.setattr(_spectrum, "PROPOSAL_ROWS", 200)  # hardly with the rows that lie apart
    X, y = make_blobs(3000, centers=[[0, 0], [8, 0], [0, 8]], random_state=2)
    places = 500.0 + 40 * np.column_stack([np.arange(apart), np.arange(apart) ** 2])
    X = np.concatenate([X, places])
    landmarks = _low_rank.make_map

    def without_those_apart(kind, kernel, rows, size, **others):
        return landmarks(kind, kernel, rows[np.abs(rows).max(axis=1) < 100], size, **others)

    monkeypatch.setattr(_low_rank, "make_map", without_those_apart)
    model = fitted(X, 3, gram="nystroem", rank=60, random_state=1)
    assert (model.order_ > 2) == raised
    assert f"{apart} rows are like no landmark or feature" in model.order_reason_
    assert ("left out" in model.order_reason_) != raised
    assert agreement(y, model) > (0.9 if raised else 0.95)
    assert isinstance(model._fitted, _factored.FactoredFitted)


@pytest.mark.once
def test_chunks_choose_the_order_too(tmp_path):
    X, _ = with_outliers(2, 1500)
    np.save(tmp_path / "rows.npy", X)
    held = fitted(X, 3, gram="nystroem", gamma=0.3)
    assert "order 2" in held.order_reason_
    read = fitted(str(tmp_path / "rows.npy"), 3, gram="nystroem", gamma=0.3)
    assert read.order_ == held.order_
    assert adjusted_rand_score(read.labels_, held.labels_) > 0.99


@pytest.mark.once
@pytest.mark.once
def test_heavy_tails_do_not_spend_all_passes():
    X = np.random.default_rng(0).standard_t(1.5, size=(6000, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        model = fitted(X, 4, gram="tiled")
    assert model.n_passes_ <= 60


# Parts


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_dust_and_small_parts_join_their_nearest(seed, k):
    random = np.random.default_rng(seed)
    sizes = (60, 50, 40, 2, 1, 1)
    centres = random.uniform(-400, 400, (6, 2))
    found = np.repeat(range(6), sizes)
    X = centres[found] + random.uniform(-1, 1, (len(found), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedWarning)
        labels = fitted(X, k, gamma=0.3).labels_
        expected = joined_parts(X, found, k)
    if k <= 3:
        assert adjusted_rand_score(expected, labels) == 1
    for label in range(k):  # no cluster spans two parts
        assert len(np.unique(expected[labels == label])) == 1


def test_parts_for_every_way_of_holding():
    X, y = unequal(0)
    gamma = fitted(X, 3).gamma_
    K = rbf_kernel(X, gamma=gamma)
    expected = fitted(X, 3, gamma=gamma, order=2).labels_
    assert adjusted_rand_score(expected, y) == 1
    for model in (
        fitted(X, 3, gamma=gamma, gram="tiled"),
        fitted(K, 3, affinity="precomputed"),
        fitted(sparse.csr_array(np.where(K > 1e-12, K, 0)), 3, affinity="precomputed"),
    ):
        assert np.array_equal(model.labels_, expected)
        assert model.order_ == 2
        np.testing.assert_allclose(model.eigenvalues_, 1, atol=1e-6)


def test_fewer_parts_than_clusters_are_cut_by_their_own_eigenvalues():
    random = np.random.default_rng(0)
    pair = np.concatenate([random.normal(size=(100, 2)) * 0.5, random.normal(size=(100, 2)) * 0.5 + [3, 0]])
    X = np.concatenate([pair, random.normal(size=(150, 2)) * 0.5 + [60, 40], [[60.0, 0]], [[3.0, 8]]])
    y = np.repeat([0, 1, 2], [100, 100, 150])
    for gram in ("dense", "tiled"):
        model = fitted(X, 3, gamma=1.0, gram=gram)
        assert agreement(y, model) == 1
        assert model.labels_[-1] == model.labels_[150]  # dust takes the label of its nearest row
        assert np.array_equal(model.predict(X), model.labels_)
        assert np.array_equal(model.predict(X[:350] + 1e-9), model.labels_[:350])
        whole = model.embedding_.T @ model.embedding_
        np.testing.assert_allclose(whole, np.eye(3), atol=1e-5)
    for assign in ("cluster_qr", "discretize", "kernel_kmeans"):
        assert agreement(y, fitted(X, 3, gamma=1.0, assign_labels=assign)) == 1


def test_noise_adds_up_to_no_part():
    X, y = with_outliers(0, 900, share=0.1)
    assert agreement(y, fitted(X, 3)) > 0.95


# Given matrices


def test_a_sparse_graph_is_clustered_as_the_dense_one():
    X, y = make_moons(600, noise=0.06, random_state=0)
    graph = kneighbors_graph(X, 10, include_self=True)
    graph = (graph + graph.T) / 2
    held, stored = fitted(graph, 2, affinity="precomputed"), fitted(graph.toarray(), 2, affinity="precomputed")
    assert adjusted_rand_score(y, held.labels_) == 1
    assert np.array_equal(held.labels_, stored.labels_)
    assert held.order_ == stored.order_
    assert np.array_equal(held.predict(graph), held.labels_)


@pytest.mark.once
@pytest.mark.once
def test_scikit_learns_segmentation_example():
    size, circles = 100, (((28, 24), 16), ((40, 50), 14), ((67, 58), 15), ((24, 70), 14))
    x, y = np.indices((size, size))
    inside = [(x - c[0]) ** 2 + (y - c[1]) ** 2 < r**2 for c, r in circles]
    mask = np.any(inside, axis=0)
    truth = np.argmax(inside, axis=0)[mask]
    image = mask.astype(float) + 1 + 0.2 * np.random.RandomState(0).randn(size, size)
    graph = img_to_graph(image, mask=mask)
    graph.data = np.exp(-graph.data / graph.data.std())
    for solver in (None, "amg"):  # "arpack" takes ten times as long, and is compared on smaller graphs
        model = fitted(graph, 4, affinity="precomputed", eigen_solver=solver)
        assert adjusted_rand_score(truth, model.labels_) > 0.9


@pytest.mark.once
def test_a_long_grid_ends():
    image = np.random.RandomState(0).rand(200, 40)
    graph = img_to_graph(image)
    graph.data = np.exp(-graph.data / graph.data.std()) + 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(graph, 26, affinity="precomputed")
    assert len(np.unique(model.labels_)) == 26
    assert np.bincount(model.labels_).min() >= np.sqrt(8000 / 26)


# New rows


@pytest.mark.parametrize("gram", ["dense", "tiled", "nystroem"])
@pytest.mark.parametrize("order", [2, 4, np.inf])
@pytest.mark.parametrize("assign", ["kmeans", "kernel_kmeans"])
def test_a_row_out_of_sight_has_the_label_of_its_nearest(gram, order, assign, iris):
    X, _ = iris
    model = fitted(X, 3, order=order, gram=gram, assign_labels=assign, **({"rank": 100} if gram == "nystroem" else {}))
    assert model.predict(X[120:121] + 20).tolist() == [model.labels_[117]]  # the row farthest out that way
    assert model.predict(X[:1] - 30).tolist() == [model.labels_[0]]


def test_labels_are_contiguous():
    X = np.repeat([[0.0], [1.0], [9.0]], 20, axis=0) + np.tile(np.linspace(0, 1e-9, 20), 3)[:, None]
    for assign in ("kmeans", "cluster_qr", "discretize"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BicliqueWarning)
            labels = fitted(X, 6, n_components=2, gamma=1.0, assign_labels=assign).labels_
        assert np.array_equal(np.unique(labels), np.arange(labels.max() + 1))


@pytest.mark.once
@pytest.mark.parametrize("seed", [0, 2])
def test_clusters_that_stand_get_the_passes_they_need(seed):
    random = np.random.default_rng(seed)
    sizes = (4500, 400, 100)
    centres = ((0, 0), (6, 0), (0, 6))
    X = np.concatenate([random.normal(size=(n, 2)) + c for n, c in zip(sizes, centres, strict=True)])
    model = BicliqueSpectralClustering(3, random_state=0).fit(X)  # tiles, and a few rows are left out
    assert model.order_ == 2
    assert adjusted_rand_score(np.repeat([0, 1, 2], sizes), model.labels_) > 0.97


def test_no_eigenvector_is_wasted_on_a_far_row():
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [700, 200, 70, 30])
    X = random.normal(size=(len(y), 5)) + 6 * np.eye(5)[y]
    gamma = 0.1
    far = np.full((1, 5), 6.5)  # linked faintly: no part of its own
    model = fitted(np.concatenate([X, far]), 4, gamma=gamma)
    K = rbf_kernel(far, X, gamma=gamma)
    assert K.max() > 1e-8
    assert model.rows_left_out_.tolist() == [1000]
    assert adjusted_rand_score(y, model.labels_[:-1]) > 0.98


@pytest.mark.parametrize("gram", ["dense", "tiled", "nystroem", "fourier"])
def test_one_column_of_unequal_clusters(gram):
    """Neighbours in a cluster of a tenth of the density are ten times as far: its rows were dust."""
    pytest.importorskip("finufft" if gram == "fourier" else "numpy")
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], [1900, 100])
    X = random.normal(size=(2000, 1)) + 6.0 * y[:, None]
    model = BicliqueSpectralClustering(2, gram=gram, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        model.fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.99


@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors"])
def test_rounded_numbers_in_one_column(affinity):
    """A hundred distinct values, some in forty rows: the smaller cluster has 5 % of the rows, a third of the values."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], [950, 50])
    X = np.round(random.normal(size=(1000, 1)) + 7.0 * y[:, None], 1)
    model = BicliqueSpectralClustering(2, affinity=affinity, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors"])
@pytest.mark.parametrize("seed", range(3))
def test_many_equal_rows_make_no_dust_of_a_cluster(affinity, seed):
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [500, 300, 100])
    X = np.array([[0, 0], [7, 0], [0, 7]])[y] + random.normal(size=(900, 2))
    equal = random.choice(900, 360, replace=False)
    X[equal], y[equal] = X[equal[0]], y[equal[0]]
    model = BicliqueSpectralClustering(3, affinity=affinity, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    rows, counts = np.unique(X, axis=0, return_counts=True)
    weighted = BicliqueSpectralClustering(3, affinity=affinity, random_state=0).fit(rows, sample_weight=counts)
    assert adjusted_rand_score(weighted.predict(X), model.labels_) == 1
