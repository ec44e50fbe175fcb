"""γ="auto" is raised where fewer links between nearest neighbours then lead from one cluster to another."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DisconnectedWarning, SolverWarning
from biclique.fit import fine_gamma
from biclique.fit.fine_gamma import cut_across
from biclique.kernels import Nearby, make_kernel, neighbor_links
from biclique.runtime import parse_memory_limit
from biclique.selection import order_path
from biclique.spectral import OrderRule
from tests import oracles


def rings(n, seed=0):
    return make_circles(n, factor=0.5, noise=0.05, random_state=seed)


def spirals(n, seed):
    random = np.random.default_rng(seed)
    turn = np.tile(np.sqrt(random.random(n // 2)) * 3 * np.pi, 2)
    y = np.repeat([0, 1], n // 2)
    arms = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) * np.where(y, -1, 1)[:, None]
    return arms + random.normal(size=(n, 2)) * 0.3, y


def three_arms():
    """Three arms of one turn each."""
    y = np.repeat([0, 1, 2], 104)
    along = np.tile(np.linspace(0.35, 1, 104), 3)
    angle = 2 * np.pi * (1.2 * along + y / 3)
    noise = np.random.default_rng(0).normal(size=(312, 2)) * 0.05
    return 10 * along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + noise, y


def links_of(kernel, X):
    return neighbor_links(Nearby.drawn(kernel, X, len(X), 0))


@pytest.mark.parametrize("affinity", ["rbf", "laplacian"])
def test_links_of_neighbors(affinity):
    X = np.concatenate([make_blobs(60, random_state=3)[0], [[40.0, 0.0], [41.0, 0.0]]])
    q = ((X[:, None] - X) ** 2).sum(axis=2) if affinity == "rbf" else np.abs(X[:, None] - X).sum(axis=2)
    found = links_of(make_kernel(affinity, gamma=1.0), X)
    assert (found.toarray() == oracles.neighbor_links(q)).all()
    few = links_of(make_kernel(affinity, gamma=1.0), X[:3])
    assert (few.toarray() == 1 - np.eye(3)).all()


def test_links_do_not_depend_on_the_order_of_rows_that_are_equally_far():
    random = np.random.default_rng(0)
    X = np.unique(random.poisson(4, (300, 3)), axis=0).astype(float)
    order = random.permutation(len(X))
    kernel = make_kernel("rbf", gamma=1.0)
    A, permuted = links_of(kernel, X).toarray(), links_of(kernel, 3 * X[order][:, ::-1] + 7).toarray()
    assert (A.sum(axis=1) > 7).mean() > 0.5
    assert (A[np.ix_(order, order)] == permuted).all()


def test_kernels_without_a_distance_have_no_links():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert Nearby.drawn(make_kernel("polynomial", gamma=1.0), X, 30, 0) is None


def test_what_cuts_across():
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        parts, labels = random.integers(3, size=40), random.choice(2, p=[0.85, 0.15], size=40)
        rule = OrderRule.of(np.ones(40), 2, (2.0,))
        expected = oracles.splits_a_part(labels, [np.flatnonzero(parts == p) for p in range(3)], 2)
        assert cut_across(labels, parts, np.ones(40), rule) == expected
        seen.add(expected)
    assert seen == {False, True}


@pytest.mark.parametrize("n", [200, 500])
@pytest.mark.parametrize("gram", ["auto", "nystroem"])
def test_rings_are_told_apart(n, gram):
    X, y = rings(n)
    model = BicliqueSpectralClustering(2, gram=gram, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert (model.predict(X) == model.labels_).all()
    assert "lead to another cluster" in model.plan_.gamma_reason
    assert model.plan_.gamma_reason in str(model.plan_)
    plain = BicliqueSpectralClustering(2, gamma="auto", random_state=0, order=2).plan(X)
    assert plain.gamma == model.gamma_
    # A number is taken as it is.
    low = float(model.plan_.gamma_reason.split()[2].rstrip(":"))
    model = BicliqueSpectralClustering(2, gram=gram, gamma=low, random_state=0).fit(X)
    assert model.gamma_ == low
    assert adjusted_rand_score(y, model.labels_) < 0.8


def test_one_path_of_orders_has_the_same_gamma():
    X, y = rings(500)
    path = order_path(X, [2, 4], n_clusters=2, random_state=0)
    assert adjusted_rand_score(y, path.labels[0]) == 1


def test_weights_are_repeated_rows():
    X, y = rings(300)
    weights = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    model = BicliqueSpectralClustering(2, random_state=0).fit(X, sample_weight=weights)
    repeated = BicliqueSpectralClustering(2, random_state=0).fit(np.repeat(X, weights.astype(int), axis=0))
    assert model.gamma_ == pytest.approx(repeated.gamma_)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("factor", [4, 16])
def test_gamma_is_raised_where_that_halves_the_links_that_leave(factor):
    """Against the definition: fits of all rows, which are few enough to be the sample, at each γ."""
    X, y = make_moons(400, noise=0.1, random_state=1) if factor == 4 else three_arms()
    k = y.max() + 1
    model = BicliqueSpectralClustering(k, random_state=0).fit(X)
    rule = float(model.plan_.gamma_reason.split()[2].rstrip(":"))
    assert model.gamma_ == pytest.approx(factor * rule, rel=1e-3)  # the reason has four digits
    A = oracles.neighbor_links(((X[:, None] - X) ** 2).sum(axis=2))
    leaving = {
        f: oracles.links_leaving(A, BicliqueSpectralClustering(k, gamma=f * rule, random_state=0).fit(X).labels_)
        for f in (1, 4, 16)
    }
    chosen = 1
    for other in (4, 16):
        if leaving[chosen] > 0.005 and leaving[other] <= 0.5 * leaving[chosen]:
            chosen = other
    assert chosen == factor
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize("seed", [0, 3])
def test_gamma_is_raised_where_links_that_leave_are_clearly_fewer_but_not_half(seed):
    """Three long clusters, side by side."""
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], 150)
    X = np.column_stack([6 * random.normal(size=450), random.normal(size=450) + 5 * y])
    model = BicliqueSpectralClustering(3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    factor, low = model.plan_.gamma_reason.split(":")[0].split(" × ")
    shares = []
    for gamma in (float(low), model.gamma_):
        labels = BicliqueSpectralClustering(3, gamma=gamma, row_normalize=True, random_state=0).fit(X).labels_
        shares.append(oracles.links_leaving(oracles.neighbor_links(((X[:, None] - X) ** 2).sum(axis=2)), labels))
    assert factor == "4"
    assert 0.5 * shares[0] < shares[1] < shares[0]


def test_gamma_stays_where_the_choice_of_clusters_does_as_well():
    """Unequal round clusters in ten columns, three deviations apart: a choice finds them with the γ of the rule."""
    y = np.repeat([0, 1], [833, 167])
    X = np.random.default_rng(0).normal(size=(1000, 10)) + 3 / np.sqrt(2) * np.eye(10)[y]
    model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    unit = BicliqueSpectralClustering(2, row_normalize=True, random_state=0).fit(X)
    assert model.plan_.gamma_reason == ""
    assert unit.gamma_ > model.gamma_  # rows of length 1 have no such choice
    assert adjusted_rand_score(y, model.labels_) > 0.2 + adjusted_rand_score(y, unit.labels_)


@pytest.mark.parametrize("seed", [1, 12])
def test_gamma_stays_where_a_higher_one_only_moves_the_border(seed):
    """Two round clusters, three deviations apart."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(1000, 2)) + 3 * np.eye(2)[np.repeat([0, 1], 500)] / np.sqrt(2)
    assert BicliqueSpectralClustering(2, random_state=0).fit(X).plan_.gamma_reason == ""
    rule = BicliqueSpectralClustering(2, order=4).plan(X).gamma
    low, high = (BicliqueSpectralClustering(2, gamma=g, random_state=0).fit(X).labels_ for g in (rule, 4 * rule))
    assert adjusted_rand_score(low, high) > 0.8


@pytest.mark.parametrize("columns", [60, 100])
def test_gamma_is_not_raised_to_where_a_cluster_is_lone_rows(columns):
    """A loose cluster of 100 rows beside a dense one of 500: at 16 times γ it has no neighbours, the other is split."""
    random, y = np.random.default_rng(2), np.repeat([0, 1], [500, 100])
    X = random.normal(size=(600, columns)) * np.where(y, 4, 1)[:, None]
    X[:, 0] += 8.5 * y
    X[:, 1] -= 8.5 * y
    model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert model.plan_.gamma_reason == ""
    assert adjusted_rand_score(y, model.labels_) > 0.6


def test_half_of_the_links_is_half_of_those_at_the_first_gamma():
    """4 times γ is taken because it is clearly better, and that must not stand in the way of 16 times."""
    X, y = make_moons(500, noise=0.15, random_state=3)
    model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert model.plan_.gamma_reason.startswith("16 × ")
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_a_bridge_between_parts_is_no_reason_to_warn():
    """Neighbours may link what clusters rightly part: few links, no warning."""
    random = np.random.default_rng(0)
    y = random.integers(3, size=400)
    X = np.column_stack([20 * random.random(400), 2 * y + 0.15 * random.standard_normal(400)])
    with warnings.catch_warnings(action="error"):
        model = BicliqueSpectralClustering(3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("seed", [1, 3])
def test_few_links_are_too_many_if_neighbors_form_the_clusters(seed):
    """To cut across two long arms takes fewer than 0.005 of their links."""
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1], 350)
    along = 3 * np.pi * np.sqrt(random.uniform(0.04, 1, 700))
    X = along[:, None] * np.column_stack([np.cos(along + np.pi * y), np.sin(along + np.pi * y)])
    X += 0.2 * random.normal(size=X.shape)
    A = oracles.neighbor_links(((X[:, None] - X) ** 2).sum(axis=2))
    model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    low = float(model.plan_.gamma_reason.split()[2].rstrip(":"))
    lower = BicliqueSpectralClustering(2, gamma=low, random_state=0).fit(X)
    assert 0 < oracles.links_leaving(A, lower.labels_) <= 0.005
    assert adjusted_rand_score(y, lower.labels_) < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_a_column_of_two_values_is_no_shape(seed):
    """All nearest rows have the same value: no clusters share fewer links than the two halves of such a column."""
    random = np.random.default_rng(seed)
    y = random.integers(3, size=600)
    X = 4 * np.eye(5)[y] + random.normal(size=(600, 5))
    X = scale(np.column_stack([X, random.random(600) < 0.5]))
    assert adjusted_rand_score(y, BicliqueSpectralClustering(3, random_state=0).fit(X).labels_) > 0.95
    kernel = make_kernel("rbf", gamma=1.0)
    assert (links_of(kernel, X) != links_of(kernel, X[:, :5])).nnz == 0
    flags = (X[:, -1:] > 0).astype(float)  # nothing else: they count
    assert links_of(kernel, flags).nnz > 0


@pytest.mark.parametrize("k", [2, 3, 4])
def test_other_data_keep_their_gamma(k):
    X = make_blobs(300, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)[0]
    assert not BicliqueSpectralClustering(k, random_state=0).fit(X).plan_.gamma_reason


def test_few_rows_a_cluster_keep_their_gamma():
    X, _ = rings(200)
    assert BicliqueSpectralClustering(2, random_state=0).plan(X).gamma_reason
    assert not BicliqueSpectralClustering(13, random_state=0).plan(X).gamma_reason


def test_if_no_gamma_does_it_is_said(monkeypatch):
    monkeypatch.setattr(fine_gamma, "FACTORS", (1.01,))
    X, y = rings(200)
    with pytest.warns(DisconnectedWarning, match=r"clusters cut across .* use affinity='nearest_neighbors'"):
        model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert not model.plan_.gamma_reason
    model = BicliqueSpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("asked", [{"order": 4}, {"order": np.inf}, {"modelling": "symmetric"}])
def test_where_parts_of_k_are_not_told_apart_gamma_stays(asked):
    X, _ = rings(200)
    assert not BicliqueSpectralClustering(2, random_state=0, **asked).plan(X).gamma_reason
    assert BicliqueSpectralClustering(2, random_state=0, order=2).plan(X).gamma_reason


def test_long_chains_are_solved_without_a_warning():
    """Krylov steps do not tell eigenvalues apart that differ in the seventh digit: the matrix is decomposed then."""
    X, y = spirals(600, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.residuals_.max() < 1e-10
    with pytest.warns(SolverWarning, match="eigenpairs above tol"):  # fewer passes were asked for
        BicliqueSpectralClustering(2, gamma=model.gamma_, order=2, max_iter=20, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("n", "gram", "limit"), [(600, "tiled", "40MB"), (600, "tiled", "12MB"), (1500, "dense", "40MB")]
)
def test_chains_are_not_decomposed_beyond_the_memory_limit(n, gram, limit):
    X = np.column_stack([np.arange(float(n)), np.zeros(n)])
    tracemalloc.start()
    with warnings.catch_warnings(action="ignore", category=SolverWarning):
        BicliqueSpectralClustering(
            4, order=2, gamma=0.1, gram=gram, memory_limit=limit, max_iter=120, random_state=0
        ).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < parse_memory_limit(limit)
