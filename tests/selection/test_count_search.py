"""The search for the number of clusters."""

import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

import biclique.selection.count_search as count_search
from biclique.exceptions import ParameterError, SelectionWarning, StructureWarning
from biclique.progress import Progress
from biclique.rows.array import Vertices
from biclique.selection import CountResult, select_n_clusters
from biclique.selection.count_result import Counted
from biclique.selection.count_search import choose_count, compared, find_curves, random_halves
from biclique.selection.one_embedding import OneEmbedding, count_parts
from tests.oracles import largest_as_stable, pair_agreement

CORNERS = [[0, 0], [9, 0], [0, 9], [9, 9]]


@pytest.fixture(scope="module")
def corners():
    X = make_blobs(160, centers=CORNERS, random_state=0)[0]
    X.setflags(write=False)
    return X


@pytest.fixture(scope="module")
def found(corners):
    return select_n_clusters(corners, 7, random_state=0)


def counted(*rows, weakest=None):
    """Numbers of clusters from 2 on: stability, standard error and smallest cluster, 10 rows of which are needed."""
    weakest = weakest or [1.0] * len(rows)
    return [Counted(k, *row[:2], j, row[2], 10.0) for k, (row, j) in enumerate(zip(rows, weakest, strict=True), 2)]


def test_the_curve_is_the_mean_agreement_with_halves(corners):
    vertices = Vertices.of_rows(corners, np.ones(len(corners)))
    halves = random_halves(len(corners), 4, np.random.RandomState(1))
    samples, curves = (np.arange(160), *halves), {}
    find_curves(curves, vertices, samples, range(2, 6), 1, Progress(False))
    own, *of_halves = (
        [OneEmbedding(some.data, some.weights, 5).labels(k) for k in range(2, 6)]
        for some in map(vertices.some, samples)
    )
    for j, one in enumerate(compared(curves, vertices.weights, samples, range(2, 6))):
        np.testing.assert_array_equal(curves[0].labels[j], own[j])
        single = [pair_agreement(own[j][rows], half[j]) for rows, half in zip(halves, of_halves, strict=True)]
        assert one.stability == pytest.approx(np.mean(single))
        assert one.standard_error == pytest.approx(np.std(single, ddof=1) / 2)
        assert one.smallest == np.bincount(own[j]).min()
        assert one.needed == pytest.approx(np.sqrt(160 / one.n_clusters))


def test_halves_are_the_two_sides_of_splits():
    halves = random_halves(11, 5, np.random.RandomState(0))
    assert [len(rows) for rows in halves] == [5] * 5
    assert not set(halves[0]) & set(halves[1])
    assert not set(halves[2]) & set(halves[3])


def test_the_largest_number_within_one_standard_error_of_the_best():
    k, second, margin, reason = choose_count(counted((0.9, 0.01, 50), (0.7, 0.3, 50)))
    assert (k, second) == (2, 3)
    assert margin == pytest.approx(0.2)
    assert "margin is small" not in reason
    # Differences below 0.03 are none.
    k, second, margin, reason = choose_count(counted((1.0, 0.0, 50), (0.985, 0.001, 50), (0.96, 0.001, 50)))
    assert (k, second) == (3, 2)
    assert margin == pytest.approx(-0.015)
    assert "margin is small" in reason


def test_a_reason_says_what_was_no_choice():
    few, enough = counted((0.9, 0.01, 50), (0.8, 0.01, 50))
    reason = choose_count([replace(few, covers_parts=False), enough])[3]
    assert "find these again best" not in reason
    assert "fewer clusters than connected components (3 or more connected components, stability 0.80" in reason
    assert reason.endswith("More than 3 were not tried.")
    assert "not tried" not in choose_count([few, enough])[3]


def test_a_larger_number_needs_clusters_that_are_found_again():
    rows = [(0.98, 0.0, 50), (0.97, 0.0, 50), (0.97, 0.0, 50)]
    assert choose_count(counted(*rows, weakest=[0.95, 0.85, 0.84]))[0] == 3
    assert choose_count(counted(*rows, weakest=[0.95, 0.8, 0.84]))[0] == 2
    assert choose_count(counted(*rows, weakest=[0.6, 0.55, 0.6]))[0] == 2


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_that_of_the_definition(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 8))
    rows = [tuple(row) for row in np.column_stack([random.uniform(0.8, 1, n), random.uniform(0, 0.05, n)]).round(2)]
    smallest = random.integers(5, 20, n)
    table = counted(*[(*row, float(size)) for row, size in zip(rows, smallest, strict=True)])
    expected = largest_as_stable([*zip(range(2, n + 2), *zip(*rows, strict=True), smallest, strict=True)], 10, 0.03)
    if expected is not None:
        assert choose_count(table)[0] == expected


@pytest.mark.parametrize(
    ("sizes", "most", "expected", "of_four_times"),
    [([60, 60, 12, 11, 3], 8, 4, 5), ([60, 60, 12, 11, 3], 3, 3, 3), ([80, 5], 8, 1, 2), ([90], 8, 1, 1)],
)
def test_parts_that_are_large_enough_are_counted(sizes, most, expected, of_four_times):
    parts = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    assert count_parts(parts, np.ones(len(parts)), most) == expected
    assert count_parts(parts, np.full(len(parts), 4.0), most) == of_four_times


def test_every_connected_component_has_a_cluster():
    """Four large clusters and four small ones: halves hardly find the small ones again, but no neighbour links them."""
    random, y = np.random.default_rng(0), np.repeat(np.arange(8), [120] * 4 + [12] * 4)
    X = random.normal(size=(len(y), 2)) + 25 * np.column_stack([y % 4, y // 4])
    result = select_n_clusters(X, 10, random_state=0)
    assert result.n_clusters == 8
    assert "again best (8 connected components, stability " in result.reason
    assert "fewer than parts" in result.summary()
    assert list(result.frame["allowed"])[:6] == [False] * 6


def test_fewer_clusters_than_parts_and_small_clusters_are_left_out_if_that_leaves_any():
    table = counted((1.0, 0.0, 50), (0.8, 0.0, 50), (0.7, 0.0, 50), (0.6, 0.0, 5))
    assert choose_count([replace(one, covers_parts=one.n_clusters >= 3) for one in table])[:2] == (3, 4)
    assert choose_count([replace(one, covers_parts=one.n_clusters >= 5) for one in table])[:2] == (2, 3)

    # If every number leaves a small cluster, the largest smallest one is taken.
    k, second, margin, reason = choose_count(counted((1.0, 0.0, 3), (1.0, 0.0, 6), (1.0, 0.0, 6)))
    assert (k, second, margin) == (3, None, None)
    assert "too small" in reason


def test_the_result_speaks(found):
    assert isinstance(found, CountResult)
    assert found.n_clusters == 4
    assert found.has_structure
    assert sorted(np.bincount(found.labels)) == [40] * 4
    assert found.margin > 0.03
    assert found.reason.startswith(
        "4 clusters: halves of the rows find these again best (4 connected components, stability 1.00"
    )
    assert f"; {found.runner_up} clusters: " in found.reason
    assert list(found.frame["n_clusters"]) == [2, 3, 4, 5, 6, 7]
    assert {"stability", "standard_error", "smallest"} <= set(found.frame.columns)
    assert "chosen" in found.summary()
    assert str(found) == found.summary()
    assert repr(found) == f"<CountResult: {found.reason}>"
    assert found._repr_html_().startswith("<pre>4 clusters: ")
    assert repr(found.structure) == f"<Structure: {found.structure.reason}>"
    assert pickle.loads(pickle.dumps(found)).reason == found.reason


def test_the_same_bits_for_any_number_of_threads(corners, capsys):
    X = corners[::2]
    one, two = (select_n_clusters(X, 4, random_state=3, n_jobs=n, verbose=1) for n in (1, 2))
    assert "numbers of clusters" in capsys.readouterr().err
    assert [c.stability for c in one.counted] == [c.stability for c in two.counted]
    np.testing.assert_array_equal(one.labels, two.labels)


def test_sparse_rows_and_repeated_rows(corners):
    X = corners[::2].round(1)
    dense = select_n_clusters(X, 4, random_state=0)
    assert select_n_clusters(sparse.csr_array(X), 4, random_state=0).n_clusters == dense.n_clusters == 4
    twice = select_n_clusters(X, 4, sample_weight=np.full(len(X), 2.0), random_state=0)
    assert twice.counted[2].smallest == 2 * dense.counted[2].smallest


def test_few_rows_are_reported():
    found = select_n_clusters(np.arange(6.0)[:, None], random_state=0)
    assert found.n_clusters == 2
    assert "6 distinct rows" in found.reason
    assert found.has_structure is None
    assert "50 are needed" in found.structure.reason
    assert select_n_clusters(np.zeros((5, 2)), random_state=0).n_clusters == 1
    assert select_n_clusters(np.eye(5), 1, random_state=0).n_clusters == 1
    with pytest.raises(ParameterError, match="nothing"):
        select_n_clusters(np.eye(3), random_state=0).plot()


def test_no_structure_is_a_warning():
    X = np.random.default_rng(0).normal(size=(120, 2))
    with pytest.warns(StructureWarning, match=r"No structure was found.*slices of one cloud") as caught:
        found = select_n_clusters(X, 3, random_state=0)
    assert f"The {found.n_clusters} clusters are slices" in str(caught[0].message)
    assert found.has_structure is False
    assert found.n_clusters in (2, 3)


def test_ctrl_c_returns_the_best_so_far(corners, monkeypatch):
    whole, done, lock = count_search.OneEmbedding, [], threading.Lock()

    def some(*rows):
        with lock:
            if len(done) == 4:
                raise KeyboardInterrupt
            done.append(1)
        return whole(*rows)

    monkeypatch.setattr(count_search, "OneEmbedding", some)
    with pytest.warns(SelectionWarning, match="interrupted"):
        found = select_n_clusters(corners, 5, random_state=0, n_jobs=1)
    assert found.interrupted
    assert found.n_clusters == 4
    done[:] = [1] * 3
    with pytest.raises(KeyboardInterrupt):
        select_n_clusters(corners, 5, random_state=0, n_jobs=1)


@pytest.mark.parametrize("wrong", [{"k_max": 0}, {"n_halves": 1}, {"n_rows": 0}, {"random_state": "x"}])
def test_wrong_arguments_are_named(corners, wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        select_n_clusters(corners, **wrong)
