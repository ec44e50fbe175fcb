"""A cut at another order without a pass, and eigenpairs of a K in parts."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from biclique.gram import DenseGram
from biclique.spectral import NormalizedCut, part_vectors, parted_eigenpairs, top_eigenpairs
from tests.oracles import projector


def points(n=700, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


@pytest.mark.parametrize("order", [2, 2.5, 4, np.inf])
def test_a_cut_at_another_order_is_the_cut_of_that_order(order):
    K = rbf_kernel(points(50), gamma=0.5)
    weights = np.arange(1.0, 51.0)
    first = NormalizedCut(DenseGram(K), 3, weights)
    other, fresh = first.at_order(order), NormalizedCut(DenseGram(K), order, weights)
    V = np.random.default_rng(1).normal(size=(50, 4))
    np.testing.assert_allclose(other.matmat(V), fresh.matmat(V), atol=1e-12)
    assert other.order == order
    assert first.order == 3
    assert other.n_passes == 2  # the first cut's, and the product


def test_products_carry_over_to_another_order():
    K = rbf_kernel(points(), gamma=0.5)
    cut = NormalizedCut(DenseGram(K), 2)
    found = top_eigenpairs(cut, 3, tol=1e-2, deflate=cut.trivial, random_state=0, keep_space=True)
    other = cut.at_order(2.2, found.space, 7)
    assert other.start.shape == (700, 7)
    np.testing.assert_allclose(other.matmat(other.start), other.start_image, atol=1e-10)
    np.testing.assert_allclose(other.trivial @ other.start, 0, atol=1e-12)
    # They are a good start: Ritz vectors of the space in which the first order was solved.
    warm = top_eigenpairs(
        other, 3, deflate=other.trivial, start=other.start, start_image=other.start_image, random_state=0
    )
    cold = top_eigenpairs(cut.at_order(2.2), 3, deflate=other.trivial, random_state=0)
    assert warm.n_passes < cold.n_passes
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-10)


def test_the_search_can_be_given_up():
    cut = NormalizedCut(DenseGram(rbf_kernel(points(), gamma=0.5)), 2)
    seen = []

    def give_up(now, vectors):
        seen.append((now.passes, now.least, vectors().shape))
        return now.passes == 3

    found = top_eigenpairs(cut, 4, deflate=cut.trivial, random_state=0, give_up=give_up)
    assert not found.converged
    assert [passes for passes, _, _ in seen] == [1, 2, 3]
    assert all(shape == (700, 4) for _, _, shape in seen)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_eigenpairs_of_parts_are_those_of_the_whole(k):
    random = np.random.default_rng(0)
    X = np.concatenate(
        [random.normal(size=(40, 2)), random.normal(size=(30, 2)) * 0.7 + 500, random.normal(size=(9, 2)) - 900]
    )
    part_of = np.repeat([0, 1, 2], [40, 30, 9])
    weights = random.integers(1, 4, len(X)).astype(float)
    K = rbf_kernel(X, gamma=0.4)
    cut = NormalizedCut(DenseGram(K), 2, weights)

    def solve(members, wanted, floor):
        own = NormalizedCut(DenseGram(K[np.ix_(members, members)]), 2, weights[members])
        return top_eigenpairs(own, wanted, deflate=own.trivial)

    found = parted_eigenpairs(cut, part_of, [np.flatnonzero(part_of == p) for p in range(3)], k, solve)
    whole = top_eigenpairs(NormalizedCut(DenseGram(K), 2, weights), k, deflate=cut.trivial)
    np.testing.assert_allclose(found.pairs.values, whole.values, atol=1e-9)
    assert (found.pairs.residuals < 1e-9).all()
    np.testing.assert_allclose(found.pairs.vectors.T @ found.pairs.vectors, np.eye(k), atol=1e-9)
    if k > 2:  # two of eigenvalue 1 and more: the space is the same, whatever its vectors
        np.testing.assert_allclose(projector(found.pairs.vectors), projector(whole.vectors), atol=1e-6)
    vectors = part_vectors(cut, part_of)
    np.testing.assert_allclose(vectors[:, 0], cut.trivial)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(cut.matmat(vectors[:, 1:]), vectors[:, 1:], atol=1e-9)


def parts_of_two_sizes():
    random = np.random.default_rng(2)
    X = np.concatenate(
        [random.normal(size=(600, 3)), random.normal(size=(530, 3)) + 500, random.normal(size=(9, 3)) - 900]
    )
    return rbf_kernel(X, gamma=0.4), np.repeat([0, 1, 2], [600, 530, 9]), random.integers(1, 4, len(X)).astype(float)


def test_the_cut_of_a_part_needs_no_pass():
    K, part_of, weights = parts_of_two_sizes()
    probe = np.random.default_rng(3).normal(size=(len(K), 5))
    cut = NormalizedCut(DenseGram(K), 2, weights, probe)
    members = np.flatnonzero(part_of == 1)
    gram = DenseGram(K[np.ix_(members, members)])
    own, fresh = cut.restricted(gram, members), NormalizedCut(gram, 2, weights[members], probe[members])
    np.testing.assert_allclose(own.trivial, fresh.trivial, atol=1e-12)
    np.testing.assert_allclose(own.start_image, fresh.start_image, atol=1e-10)
    np.testing.assert_allclose(own.matmat(own.start), own.start_image, atol=1e-10)
    assert own.n_passes == 1
    with pytest.raises(ValueError, match="higher orders"):
        cut.at_order(3).restricted(gram, members)


@pytest.mark.parametrize("finished", [True, False])
def test_another_order_starts_from_what_was_found_in_parts(finished):
    K, part_of, weights = parts_of_two_sizes()
    cut = NormalizedCut(DenseGram(K), 2, weights)

    def solve(members, wanted, floor):
        own = cut.restricted(DenseGram(K[np.ix_(members, members)]), members)
        return top_eigenpairs(
            own, wanted, deflate=own.trivial, random_state=0, keep_space=True, max_iter=50 if finished else 3
        )

    k = 4
    before = cut.n_passes
    found = parted_eigenpairs(cut, part_of, [np.flatnonzero(part_of == p) for p in range(3)], k, solve).pairs
    assert found.converged == finished
    assert cut.n_passes - before == found.n_passes  # the images of an unfinished search cost no pass
    np.testing.assert_allclose(cut.matmat(found.vectors), found.images, atol=1e-8)
    other = cut.at_order(2.1, found.space, 8)
    np.testing.assert_allclose(other.matmat(other.start), other.start_image, atol=1e-8)
    cold = top_eigenpairs(other, k, deflate=other.trivial, random_state=0)
    warm = top_eigenpairs(
        other, k, deflate=other.trivial, start=other.start, start_image=other.start_image, random_state=0
    )
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-8)
    assert warm.n_passes < cold.n_passes
