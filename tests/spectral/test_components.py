"""Connected components: how they are grouped, and the eigenpairs that they have, against the whole matrix."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag

from biclique import BicliqueSpectralClustering
from biclique.features.neighborhoods import joined_components
from biclique.fit.neighborhood_cut import landmark_pairs
from biclique.gram.sparse import SparseGram
from biclique.spectral.components import grouped, parted_eigenpairs
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import dense_eigenpairs
from tests.oracles import leading_pairs


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_components_are_grouped_whole_and_evenly(k):
    random = np.random.default_rng(k)
    parts = np.concatenate([np.arange(7), random.integers(7, size=60)])
    volumes = random.uniform(0.1, 2, size=67)
    totals = [volumes[parts == j].sum() for j in range(7)]
    groups = [[] for _ in range(min(k, 7))]
    for j in sorted(range(7), key=lambda j: -totals[j]):
        free = [group for group in groups if not group]
        (free or sorted(groups, key=lambda group: sum(totals[i] for i in group)))[0].append(j)
    found = grouped(parts, volumes, k)
    assert sorted(np.flatnonzero(found == g).tolist() for g in range(len(groups))) == sorted(map(sorted, groups))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_eigenpairs_of_components_are_those_of_the_whole(k, weighted):
    """Three components of 12, 9 and 1 rows, mixed: two eigenvalues are 1, and the others come from inside."""
    random = np.random.default_rng(0)
    blocks = [random.uniform(0.1, 1, size=(size, size)) ** 4 for size in (12, 9, 1)]
    K = block_diag(*(block + block.T for block in blocks))
    mixed = random.permutation(22)
    weights = random.integers(1, 4, 22).astype(float) if weighted else np.ones(22)
    gram = SparseGram(K[np.ix_(mixed, mixed)])
    parts = gram.parts()
    assert sorted(np.bincount(parts)) == [1, 9, 12]
    cut = NormalizedCut(gram, 2.0, weights)
    found = parted_eigenpairs(cut, parts, k, lambda own, wanted: dense_eigenpairs(own, wanted, own.trivial))
    B = cut.matmat(np.eye(22))
    values, vectors = leading_pairs(B, cut.trivial, k)
    np.testing.assert_allclose(found.values, values, atol=1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(cut.trivial @ found.vectors, 0, atol=1e-12)
    np.testing.assert_allclose(found.images, B @ found.vectors, atol=1e-12)
    assert found.residuals.max() < 1e-12
    if k > 1:  # of the two eigenvalues 1, any direction will do
        np.testing.assert_allclose(found.vectors @ found.vectors.T, vectors @ vectors.T, atol=1e-9)


def test_a_landmark_that_no_row_has_is_in_no_component():
    """Centres move after their rows were counted, and may end up nearest to none."""
    random = np.random.default_rng(0)
    phi = np.zeros((30, 6))
    phi[np.arange(30), random.integers(0, 3, 30)] = phi[np.arange(30), random.integers(3, 5, 30)] = 1.0  # not the last
    s = phi.sum(axis=0)
    A = sparse.csr_array(phi / np.sqrt(phi @ s)[:, None])
    G, parts = sparse.csr_array(A.T @ A), joined_components(sparse.csr_array(phi))
    assert parts.tolist() == [0, 0, 0, 0, 0, -1]
    found = landmark_pairs(G, s, parts, 3, 1e-10)
    values, vectors = leading_pairs(G.toarray() - np.outer(s, s) / (s @ s), s / np.linalg.norm(s), 3)
    np.testing.assert_allclose(found.values, values, atol=1e-12)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, vectors @ vectors.T, atol=1e-9)
    assert (found.vectors[5] == 0).all()
    X = np.unique(np.round(np.random.default_rng(139).normal(size=(60, 2)) ** 3, 2), axis=0)
    for seed in range(5):  # two of them have one
        model = BicliqueSpectralClustering(1, rank=25, n_neighbors=1, random_state=seed).fit(X)
        assert (model.labels_ == 0).all()
