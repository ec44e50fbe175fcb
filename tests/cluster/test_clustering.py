import pickle
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from threadpoolctl import threadpool_limits

from biclique import BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.exceptions import SolverWarning
from biclique.fit import exact as _prepare
from biclique.fit.exact import solve_cut
from biclique.kernels import Columns
from biclique.kernels.named import KERNEL_NAMES, make_kernel
from biclique.scores import clustering_error
from biclique.spectral.assign import ASSIGNERS
from tests.optional import Optional
from tests.oracles import algorithm_1, modularity, order_2_like_sklearn, partition, projector

pd = Optional("pandas")
pl = Optional("polars")

KERNELS = [{"affinity": "rbf", "gram": "dense"}, {"affinity": "rbf", "gram": "tiled"}]
USABLE = sorted(set(KERNEL_NAMES) - {"additive_chi2", "poly"})  # additive_chi2 is never positive


def same(a, b):
    return adjusted_rand_score(a, b) == 1.0


# Right by definition


@pytest.mark.parametrize("name", USABLE)
@pytest.mark.parametrize("order", [2, 2.5, 4, 20, 1000, np.inf])
@pytest.mark.parametrize("gram", ["dense", "tiled"])
def test_eigenvalues_subspace_and_partition_are_the_definitions(name, order, gram, blobs):
    X, k = blobs[0], 4
    gamma = 0.02
    K = make_kernel(name, gamma=gamma, columns=Columns.of(X)).block(X, X)
    K = (K + K.T) / 2
    model = BicliqueSpectralClustering(
        k, affinity=name, gamma=gamma, order=order, gram=gram, precision="float64", random_state=0
    ).fit(X)
    if np.isinf(order):
        values, vectors = modularity(K)
        values = values[: k - 1] / K.sum() * len(K)
        vectors = np.column_stack([np.full(len(K), len(K) ** -0.5), vectors[:, : k - 1]])
    else:
        values, vectors = algorithm_1(K, order)
        values, vectors = values[1:k] * (order / 2) ** 2, vectors[:, :k]
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7, atol=1e-10)
    if values[-1] > 1e-6:
        difference = projector(model.embedding_) - projector(vectors)
        assert np.linalg.norm(difference, 2) < 1e-5
        assert same(model.labels_, partition(vectors, k))
    assert model.order_ == order
    assert model.gram_ == gram
    assert (model.residuals_ < 1e-8).all()


@pytest.mark.parametrize("gamma", [0.3, 0.7, 1.0, 1.5, 3.0])
def test_order_2_gives_scikit_learns_partition_after_its_two_changes(gamma, iris):
    X = iris[0]
    theirs = SpectralClustering(3, gamma=gamma, random_state=0, n_init=50).fit(X).labels_
    assert same(theirs, partition(order_2_like_sklearn(rbf_kernel(X, gamma=gamma), 3), 3))
    # And our own operator leads to the same embedding from the same matrix.
    K = rbf_kernel(X, gamma=gamma)
    np.fill_diagonal(K, 0)
    model = BicliqueSpectralClustering(3, affinity="precomputed", order=2).fit(K)
    assert same(theirs, partition(model.embedding_ / np.sqrt(K.sum(axis=1))[:, None], 3))


@pytest.mark.parametrize(
    ("load", "scaled", "most"),
    [("iris", False, 0.05), (load_wine, True, 0.07), (load_breast_cancer, True, 0.08), (load_digits, False, 0.12)],
)
def test_defaults_without_tuning(load, scaled, most, iris):
    X, y = iris if load == "iris" else load(return_X_y=True)
    if scaled:
        X = scale(X)
    model = BicliqueSpectralClustering(len(set(y)), random_state=0).fit(X)
    assert clustering_error(y, model.labels_) <= most
    assert model.order_ == 2


# Reproducible


@pytest.mark.once
@pytest.mark.parametrize("options", [{}, *KERNELS, {"affinity": "rbf", "gram": "nystroem"}])
def test_embedding_is_bit_identical_whatever_the_threads(options, free_blas):
    X, _ = make_blobs(1500, 6, centers=5, cluster_std=1.8, random_state=1)
    found = []
    for blas, jobs in ((1, 1), (2, 1), (4, 2), (2, 5), (4, None)):
        with threadpool_limits(blas):
            model = BicliqueSpectralClustering(5, n_jobs=jobs, random_state=0, **options).fit(X)
        found.append((model.embedding_.tobytes(), model.labels_.tobytes()))
    assert len(set(found)) == 1


@pytest.mark.parametrize(("affinity", "rounding"), [("rbf", 0), ("neighborhoods", 1e-13)])
def test_permuted_rows_give_the_same_in_another_order(affinity, rounding, many_blobs):
    """The same bits for a kernel; sums of neighbourhoods are in another order."""
    X, _ = many_blobs
    order = np.random.default_rng(0).permutation(len(X))
    first, second = (
        BicliqueSpectralClustering(5, affinity=affinity, random_state=0).fit(rows) for rows in (X, X[order])
    )
    np.testing.assert_allclose(first.embedding_[order], second.embedding_, rtol=0, atol=rounding)
    assert np.array_equal(first.labels_[order], second.labels_)


def test_a_start_from_a_few_rows_changes_passes_alone(many_blobs, monkeypatch):
    X, _ = many_blobs
    ask = {"n_clusters": 5, "affinity": "rbf", "gram": "tiled", "eigen_tol": 1e-6, "random_state": 0}
    plain = BicliqueSpectralClustering(**ask).fit(X)
    monkeypatch.setattr(_prepare, "START_FROM", 1000)
    monkeypatch.setattr(_prepare, "START_ROWS", 500)
    started = BicliqueSpectralClustering(**ask).fit(X)
    assert started.n_passes_ < plain.n_passes_
    np.testing.assert_allclose(started.eigenvalues_, plain.eigenvalues_, rtol=1e-6)
    assert adjusted_rand_score(started.labels_, plain.labels_) == 1
    # It is drawn from distinct rows in an order of their own: neither threads nor the order of rows change a bit.
    order = np.random.default_rng(0).permutation(len(X))
    again = BicliqueSpectralClustering(**ask, n_jobs=1).fit(X[order])
    assert np.array_equal(again.eigenvalues_, started.eigenvalues_)
    assert np.array_equal(again.labels_, started.labels_[order])
    odd = BicliqueSpectralClustering(**{**ask, "order": 3}, modelling="symmetric").fit(X)
    assert adjusted_rand_score(odd.labels_, plain.labels_) > 0.9


# New rows


@pytest.mark.parametrize(("affinity", "gram"), [("neighborhoods", "auto"), ("rbf", "dense"), ("rbf", "tiled")])
@pytest.mark.parametrize("order", [2, 4])
def test_new_rows_out_of_sight_get_a_label_and_a_finite_embedding(affinity, gram, order, many_blobs):
    X, _ = many_blobs
    model = BicliqueSpectralClustering(5, affinity=affinity, gram=gram, order=order, random_state=0).fit(X)
    far = X.mean(axis=0) + np.outer([1e4, 1e9, 1e15, -1e15], X[0] - X.mean(axis=0))
    embedded = model.transform(far)
    assert np.isfinite(embedded).all()
    assert set(model.predict(far)) <= set(range(5))  # very far away all distances are equal
    if affinity == "rbf":
        np.testing.assert_allclose(embedded[:, 1:], 0, atol=1e-12)
    else:
        nearest = np.argsort(((X - far[0]) ** 2).sum(axis=1))[: model.n_neighbors_]
        assert model.predict(far[:1])[0] in model.labels_[nearest]


# Given matrices


@pytest.mark.parametrize("k", [4, 7])
@pytest.mark.parametrize("assign", sorted(ASSIGNERS))
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_precomputed_is_the_same_as_the_kernel(convert, assign, k, blobs):
    X, new = np.repeat(blobs[0][:100], 1 + np.arange(100) % 3, axis=0), blobs[0][200:]  # some rows are equal
    K, crossed = (convert(rbf_kernel(rows, X, gamma=0.05)) for rows in (X, new))
    ask = {"order": 2, "assign_labels": assign, "random_state": 0}
    plain = BicliqueSpectralClustering(k, affinity="rbf", gamma=0.05, **ask).fit(X)
    model = BicliqueSpectralClustering(k, affinity="precomputed", **ask).fit(K)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-9)
    assert np.array_equal(model.predict(K), model.labels_)
    np.testing.assert_allclose(model.transform(K), model.embedding_, atol=1e-12)
    assert len(np.unique(np.column_stack([X, model.labels_]), axis=0)) == 100  # equal rows have equal labels
    if k == 4:
        assert same(np.concatenate([model.labels_, model.predict(crossed)]), plain.predict(np.concatenate([X, new])))
    assert model.gamma_ is None
    assert model.gram_ == ("dense" if convert is np.asarray else "sparse")


@pytest.mark.parametrize(
    ("affinity", "gram"),
    [
        ("neighborhoods", "auto"),
        ("nearest_neighbors", "auto"),
        *product(["linear", "cosine", "rbf"], ["auto", "dense", "tiled"]),
        *product(
            ["laplacian", "polynomial", "sigmoid", "chi2", "cosine", lambda a, b: float(a @ b)],
            ["dense", "tiled", "nystroem"],
        ),
    ],
)
def test_sparse_rows_are_the_same_as_dense_ones(affinity, gram):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 30)) < 0.2, rng.random((120, 30)), 0) + np.repeat(np.eye(4), 30, axis=0) @ (
        rng.random((4, 30)) > 0.5
    )
    ask = {
        "affinity": affinity,
        "gamma": 0.01 if affinity == "sigmoid" else "auto",
        "order": "auto" if gram == "auto" else 2,
        "random_state": 0,
    }
    dense = BicliqueSpectralClustering(4, gram="nystroem" if gram == "nystroem" else "auto", **ask).fit(X)
    for container in (sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix):
        model = BicliqueSpectralClustering(4, gram=gram, **ask).fit(container(X))
        np.testing.assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-5)
        assert same(model.labels_, dense.labels_)
        assert np.array_equal(model.predict(container(X)), model.labels_)


@pytest.mark.parametrize(
    ("options", "nearly"),
    [({}, 1e-12), ({"affinity": "rbf", "gamma": 1.0}, 1e-9), ({"affinity": "nearest_neighbors"}, 1e-12)],
)
def test_sparse_and_dense_rows_may_be_mixed(options, nearly, iris):
    X = np.asarray(iris[0]) + 100
    for fitted, asked in ((np.asarray, sparse.csr_array), (sparse.csr_matrix, np.asarray)):
        model = BicliqueSpectralClustering(3, random_state=0, **options).fit(fitted(X))
        assert np.array_equal(model.predict(asked(X)), model.labels_)
        assert np.array_equal(model.predict(asked(X + nearly)), model.labels_)


# A good citizen


def test_frames_names_pipelines_pickles_and_clones(iris):
    X, _ = iris
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    plain = BicliqueSpectralClustering(3, random_state=0).fit(X)
    for table in (frame, pl.DataFrame(frame.to_dict("list"))):
        model = BicliqueSpectralClustering(3, random_state=0).fit(table)
        assert np.array_equal(model.labels_, plain.labels_)
        assert model.feature_names_in_.tolist() == names
        assert np.array_equal(model.predict(table), plain.labels_)
    expected = [f"bicliquespectralclustering{i}" for i in range(3)]
    assert model.get_feature_names_out().tolist() == expected
    for container, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        out = clone(model).set_output(transform=container).fit_transform(frame)
        assert isinstance(out, kind)
        assert list(out.columns) == expected
    copy = pickle.loads(pickle.dumps(plain))
    assert np.array_equal(copy.predict(X + 0.01), plain.predict(X + 0.01))
    pipeline = make_pipeline(StandardScaler(), BicliqueSpectralClustering(3, random_state=0))
    assert np.array_equal(pipeline.fit_predict(X), pipeline.predict(X))


def test_every_parameter_of_scikit_learns_is_accepted(iris):
    theirs = SpectralClustering(3).get_params()
    ours = BicliqueSpectralClustering(3)
    assert set(theirs) <= set(ours.get_params())
    model = BicliqueSpectralClustering(**{**theirs, "gamma": 1.0, "n_init": 10}).fit(iris[0])
    assert len(model.labels_) == 150
    kernels = (
        BicliqueSpectralClustering(3, affinity="rbf", eigen_solver=solver, random_state=0).fit(iris[0])
        for solver in ("amg", None)
    )
    assert len({model.labels_.tobytes() for model in kernels}) == 1


@pytest.mark.parametrize(("affinity", "nearly"), [("neighborhoods", 1e-12), ("rbf", 1e-9)])
def test_the_embedding_is_the_clusterers(affinity, nearly, iris):
    X, _ = iris
    clustering = BicliqueSpectralClustering(3, affinity=affinity, random_state=0).fit(X)
    whole = BicliqueSpectralEmbedding(3, affinity=affinity, drop_first=False).fit(X)
    np.testing.assert_allclose(whole.embedding_, clustering.embedding_, atol=1e-12)
    dropped = BicliqueSpectralEmbedding(2, affinity=affinity).fit(X)
    np.testing.assert_allclose(dropped.embedding_, clustering.embedding_[:, 1:], atol=1e-12)
    np.testing.assert_allclose(dropped.transform(X[:5] + nearly), dropped.embedding_[:5], atol=1e-6)
    assert dropped.get_feature_names_out().tolist() == [f"bicliquespectralembedding{i}" for i in range(2)]


@pytest.mark.filterwarnings("ignore::biclique.exceptions.DisconnectedWarning")
def test_weights_of_zero_have_no_say_but_get_a_label(blobs):
    X, _ = blobs
    weights = (np.arange(300) < 200).astype(float)
    model = BicliqueSpectralClustering(4, random_state=0).fit(X, sample_weight=weights)
    few = BicliqueSpectralClustering(4, random_state=0).fit(X[:200])
    assert np.array_equal(model.labels_, few.predict(X))
    assert model.gamma_ == few.gamma_


def test_the_embedding_has_n_components_columns(iris):
    assert BicliqueSpectralClustering(3, n_components=5, random_state=0).fit(iris[0]).embedding_.shape == (150, 5)
    assert BicliqueSpectralClustering(1).fit(iris[0]).eigenvalues_.shape == (0,)


# Warnings with numbers


def test_unfinished_eigenpairs_are_counted(many_blobs, monkeypatch):
    monkeypatch.setattr("biclique.fit.exact.solve_cut.__kwdefaults__", {**solve_cut.__kwdefaults__, "max_passes": 2})
    with pytest.warns(SolverWarning, match=r"\d of 7 eigenpairs above tol \(worst residual .* after 2 passes; raise"):
        BicliqueSpectralClustering(8, affinity="rbf", random_state=0).fit(many_blobs[0])


@pytest.mark.once
@pytest.mark.parametrize("affinity", ["neighborhoods", "nearest_neighbors"])
@pytest.mark.parametrize("sizes", [(950, 50), (700, 200, 70, 30)])
def test_small_clusters_in_many_columns_are_found(sizes, affinity):
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = random.normal(size=(len(y), 10)) + 4.5 * np.eye(10)[y]  # 6.4 deviations apart
    model = BicliqueSpectralClustering(len(sizes), affinity=affinity, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert np.array_equal(model.predict(X), model.labels_)
