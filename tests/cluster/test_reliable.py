"""Limits, masks, seeds, given matrices with equal rows: what must not surprise."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from biclique import BicliqueKernelKMeans, BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.exceptions import DataError, MemoryLimitError
from tests.calls import peak_memory

ESTIMATORS = (BicliqueSpectralClustering, BicliqueSpectralEmbedding, BicliqueKernelKMeans)


def blobs(n=300, k=3, seed=0):
    return make_blobs(n, 3, centers=k, random_state=seed)[0]


# Input


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_masks_are_refused_not_ignored(estimator):
    X = np.ma.masked_array(blobs(), mask=False)
    X[7, 1] = np.ma.masked
    with pytest.raises(
        DataError, match=r"X has masked values, the first in row 7, counted from 0: fill them in with \.filled"
    ):
        estimator(3).fit(X)
    weights = np.ma.masked_equal(np.arange(300.0), 5)
    with pytest.raises(DataError, match="sample_weight has masked values, the first in row 5"):
        estimator(3).fit(blobs(), sample_weight=weights)
    estimator(3, random_state=0).fit(np.ma.masked_array(blobs(), mask=False))  # nothing is masked


@pytest.mark.parametrize(
    "way",
    [
        {"affinity": "precomputed", "order": 2.5},
        {"affinity": "rbf", "gamma": 0.3, "modelling": "symmetric", "order": 5},
        {"affinity": "rbf"},
        {"affinity": "nearest_neighbors"},
        {"affinity": "rbf", "gram": "nystroem", "rank": 50, "precision": "float64"},
    ],
)
def test_weights_are_repeated_rows(way):
    X = blobs(80)
    counts = np.random.default_rng(0).integers(0, 30, 80) // 5
    numbers = np.repeat(np.arange(80), counts)
    K = rbf_kernel(X, gamma=0.3)
    given = way["affinity"] == "precomputed"
    rows, again, asked = (K, K[np.ix_(numbers, numbers)], K[:, numbers]) if given else (X, X[numbers], X)
    weighted = BicliqueSpectralClustering(4, random_state=0, **way).fit(rows, sample_weight=counts)
    repeated = BicliqueSpectralClustering(4, random_state=0, **way).fit(again)
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=1e-10)
    assert np.array_equal(weighted.labels_[numbers], repeated.labels_)
    assert np.array_equal(weighted.predict(rows), weighted.labels_)
    assert np.array_equal(weighted.predict_proba(rows).argmax(axis=1), weighted.labels_)
    np.testing.assert_allclose(weighted.predict_proba(rows), repeated.predict_proba(asked), atol=1e-6)


@pytest.mark.parametrize(
    "way",
    [
        {"affinity": "precomputed", "order": 2.5},
        {"modelling": "symmetric", "order": 5},
        {"order": 4, "gram": "dense"},
        {"order": 4, "gram": "tiled", "precision": "float64"},
    ],
    ids=str,
)
def test_weights_are_repeated_rows_that_are_not_merged(way):
    X, random = blobs(80), np.random.default_rng(0)
    counts = random.integers(0, 30, 80) // 5
    numbers = np.repeat(np.arange(80), counts)
    moved = X[numbers] + 1e-9 * random.normal(size=(len(numbers), X.shape[1]))  # equal rows would become one
    rows, again = (rbf_kernel(Y, gamma=0.3) if "affinity" in way else Y for Y in (X, moved))
    options = {"affinity": "rbf", "gamma": 0.3, "random_state": 0, "eigen_tol": 1e-9, **way}
    weighted = BicliqueSpectralClustering(4, **options).fit(rows, sample_weight=counts)
    repeated = BicliqueSpectralClustering(4, **options).fit(again)
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=1e-7)
    assert adjusted_rand_score(weighted.labels_[numbers], repeated.labels_) == 1


@pytest.mark.once
@pytest.mark.parametrize(
    "make", [lambda K: K, lambda K: K.astype(np.float32), lambda K: K + 1e-9 * np.triu(K), sparse.csr_array]
)
def test_a_given_matrix_keeps_to_the_free_memory(make, monkeypatch):
    K = make(rbf_kernel(blobs(900), gamma=0.3))
    limit = 2 * 2**20
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: limit)

    def refused():
        with pytest.raises(MemoryLimitError, match=r"given .*matrix needs .* are free: make the matrix symmetric"):
            BicliqueSpectralClustering(3, affinity="precomputed").fit(K)

    assert peak_memory(refused)[0] < 2 * limit
    monkeypatch.undo()
    BicliqueSpectralClustering(3, affinity="precomputed", random_state=0).fit(K)


# Numbers


@pytest.mark.once
@pytest.mark.parametrize("affinity", ["neighborhoods", "rbf"])
def test_as_many_clusters_as_are_asked_for_however_many(affinity):
    X = np.random.default_rng(0).normal(size=(700, 3))
    model = BicliqueSpectralClustering(200, affinity=affinity, random_state=0, n_init=2).fit(X)
    assert len(np.unique(model.labels_)) == 200


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["arpack", "lobpcg"])
def test_other_solvers_give_the_same_bits_again(solver):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 6])
    for options in ({"affinity": "linear", "coef0": 1}, {"affinity": "poly", "degree": 2}, {"affinity": "rbf"}):
        fit = {"eigen_solver": solver, "random_state": 3, "order": 4, **options}
        found = [BicliqueSpectralClustering(5, **fit).fit(np.abs(X)) for _ in range(3)]
        assert all(np.array_equal(model.embedding_, found[0].embedding_) for model in found)
