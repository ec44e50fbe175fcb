import numpy as np
import pytest

from biclique.kernels import RBF
from biclique.report.rows import FAINT, Facts, look, thinned
from biclique.report.sample import groups_of, sample_again
from tests.report.made import fitted, groups


def test_thinning_keeps_small_clusters_and_the_limit():
    labels = np.repeat([0, 1, 2], [50_000, 150, 9_000])
    chosen = thinned(labels, 3, 20_000, 200, np.random.RandomState(0))
    assert (np.diff(chosen) > 0).all()
    sizes = np.bincount(labels[chosen])
    assert 19_990 <= sizes.sum() <= 20_000
    assert sizes[1] == 150
    assert sizes[2] >= 200
    assert sizes[0] / sizes[2] == pytest.approx(50_000 / 9_000, rel=0.1)
    assert thinned(np.array([1, 0, 1]), 2, 20, 2, np.random.RandomState(0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("k", "size", "most", "least"), [(300, 100, 20_000, 66), (1_500, 2, 1_000, 0)])
def test_more_clusters_than_room_share_it(k, size, most, least):
    labels = np.tile(np.arange(k), size)
    chosen = thinned(labels, k, most, 200, np.random.RandomState(0))
    sizes = np.bincount(labels[chosen], minlength=k)
    assert sizes.sum() == most
    assert sizes.min() >= least
    assert least or sizes.max() == 1


def test_facts_are_those_of_the_model():
    model, X = fitted(), groups()
    facts = look(model._subject(), X, None)
    p = model.predict_proba(X)
    for cluster in range(3):
        np.testing.assert_allclose(facts.mixed[cluster], p[model.labels_ == cluster].sum(axis=0), rtol=1e-9)
    first, second = (np.flatnonzero(model.labels_ == j) for j in (0, 1))
    expected = (p[first, 1].sum() + p[second, 0].sum()) / (len(first) + len(second))
    assert facts.overlap[0, 1] == pytest.approx(expected)
    assert facts.overlap[0, 0] == 0


def test_rows_that_fit_nowhere_and_clusters_that_are_hard_to_tell_apart():
    labels = np.array([0, 0, 0, 0, 1, 1])
    best = np.array([0.9, 0.49, 0.5, 0.9, 1.0, 1.0])
    degrees = np.array([10.0, 10.0, 10.0, 0.99 * FAINT * 10, 0.5, 0.5])
    facts = Facts(labels, best, degrees, np.zeros((2, 2)))
    assert facts.faint.tolist() == [False, False, False, True, False, False]
    assert facts.nowhere.tolist() == [False, True, False, True, False, False]
    unknown = Facts(labels, best, np.full(6, np.nan), np.zeros((2, 2)))
    assert unknown.nowhere.tolist() == [False, True, False, False, False, False]

    # Pairs that are hard to tell apart, the worst first.
    facts = Facts(np.repeat([0, 1, 2], 10), np.ones(30), np.ones(30), np.array([[8, 2, 0], [1, 4, 5.0], [0, 4, 6]]))
    assert [(a, b) for a, b, _ in facts.hard_pairs()] == [(1, 2), (0, 1)]
    assert facts.hard_pairs()[0][2] == pytest.approx(9 / 20)


def test_groups_stay_inside_clusters():
    labels = np.repeat([1, 0], [90, 10])
    cells, clusters = groups_of(labels, 2, 20)
    assert sorted(np.concatenate(cells).tolist()) == list(range(100))
    for members, cluster in zip(cells, clusters, strict=True):
        assert set(labels[members]) == {cluster}
    assert 18 <= len(cells) <= 22
    cells, clusters = groups_of(np.repeat([0, 1, 2], [3, 1, 2]), 3, 2)
    assert clusters.tolist() == [0, 2]  # the largest
    assert (np.diff(clusters) >= 0).all()


@pytest.mark.parametrize("order", ["auto", 4.0])
@pytest.mark.parametrize("affinity", ["neighborhoods", "nearest_neighbors", "rbf"])
def test_the_sample_gives_the_models_own_clusters_at_its_order(affinity, order):
    model, X = fitted(affinity=affinity, order=order), groups()
    found = sample_again(model._subject(), X, model.labels_)
    if affinity == "rbf":
        at = found.path.orders.index(model.order_)
        assert found.path.agreement[at] == 1
        assert found.path.labels.shape == (len(found.path.orders), len(X))
    else:
        assert (found.path, found.reason) == (None, "")
    K = found.cells
    inside = found.clusters[:, None] == found.clusters
    assert K[inside].mean() > 3 * K[~inside].mean()


def test_similarities_are_means_of_the_kernel():
    model, X = fitted(affinity="rbf", gamma=0.3), groups()
    found = sample_again(model._subject(), X, model.labels_, path=False)
    cells, _ = groups_of(model.labels_, 3, 160)
    K = RBF(0.3).block(X, X)
    assert found.cells[0, 7] == pytest.approx(K[np.ix_(cells[0], cells[7])].mean())
    alone = sample_again(model._subject(), X[:1], model.labels_[:1])
    assert (alone.cells, alone.path, alone.reason) == (None, None, "there is only one row")
