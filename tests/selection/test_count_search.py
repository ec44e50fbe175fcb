"""The search for the number of clusters."""

import pickle
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.preprocessing import StandardScaler

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
    """Numbers of clusters from 2 on: stability, standard error and smallest cluster."""
    weakest = weakest or [1.0] * len(rows)
    return [Counted(k, *row[:2], j, row[2]) for k, (row, j) in enumerate(zip(rows, weakest, strict=True), 2)]


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


def test_halves_are_the_two_sides_of_splits():
    halves = random_halves(11, 5, np.random.RandomState(0))
    assert [len(rows) for rows in halves] == [5] * 5
    assert not set(halves[0]) & set(halves[1])
    assert not set(halves[2]) & set(halves[3])


def test_a_choice_has_a_margin_and_names_what_fits_almost_as_well():
    k, second, margin, reason = choose_count(counted((0.9, 0.01, 50), (0.7, 0.3, 50)))
    assert (k, second, margin) == (2, 3, pytest.approx(0.2))
    assert "almost as well" not in reason
    # Differences below 0.03 are none.
    k, second, margin, reason = choose_count(counted((1.0, 0.0, 50), (0.985, 0.001, 50), (0.96, 0.001, 50)))
    assert (k, second, margin) == (3, 2, pytest.approx(-0.015))
    assert "2 clusters fit almost as well." in reason


def test_a_reason_says_what_was_no_choice():
    few, enough = counted((0.9, 0.01, 50), (0.8, 0.01, 50))
    reason = choose_count([replace(few, covers_parts=False), enough])[3]
    assert "find these again best" not in reason
    assert "fewer clusters than connected components (3 or more connected components, stability 0.80" in reason
    assert " 2 clusters were found again more often (0.90), but there are 3 or more connected components: " in reason
    assert "choose them with n_clusters=2." in reason
    assert reason.endswith("More than 3 were not tried: raise k_max of select_n_clusters (command line: --k-max).")
    usual = choose_count([few, enough])[3]
    assert not [words for words in ("not tried", "more often", "poorly") if words in usual]


def test_a_poor_choice_is_called_poor():
    low, high = (choose_count(counted((stability, 0.01, 50), (0.5, 0.01, 50)))[3] for stability in (0.79, 0.8))
    assert "find these again best, but poorly (stability 0.79" in low
    assert "poorly" not in high


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
    covers = np.arange(n) >= random.integers(0, n + 1)
    table = [
        replace(one, covers_parts=bool(c))
        for one, c in zip(counted(*[(*row, 9.0) for row in rows]), covers, strict=True)
    ]
    expected = largest_as_stable([*zip(range(2, n + 2), *zip(*rows, strict=True), covers, strict=True)], 0.03)
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
    assert "again best, but poorly (8 connected components, stability " in result.reason
    assert " 4 clusters were found again more often (" in result.reason
    assert "fewer than parts" in result.summary()
    assert list(result.frame["allowed"])[:6] == [False] * 6


def test_parts_do_not_count_against_what_every_half_finds_again():
    few, *more = counted((0.97, 0.0, 50), (0.8, 0.0, 50), (0.7, 0.0, 50))
    assert choose_count([replace(few, covers_parts=False), *more])[0] == 2
    assert choose_count([replace(few, covers_parts=False, stability=0.96), *more])[0] == 3


def three_groups(n, shares, random):
    y = np.repeat(np.arange(3), np.round(n * np.array(shares)).astype(int))
    return np.array([[0, 0], [8, 0], [0, 8]])[y] + random.normal(size=(len(y), 2))


@pytest.mark.parametrize("n", [5_000, 50_000])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_share_of_the_rows_is_a_cluster(n, seed):
    X = three_groups(n, (0.9, 0.08, 0.02), np.random.default_rng(seed))
    found = select_n_clusters(X, random_state=seed)
    assert found.n_clusters == 3
    assert found.counted[1].stability > 0.95


@pytest.mark.parametrize(("n", "seed"), [(1_500, 170), (3_000, 0)])
def test_gaps_by_chance_do_not_split_moons(n, seed):
    X = StandardScaler().fit_transform(make_moons(n, noise=0.05, random_state=seed)[0])
    assert [select_n_clusters(X, random_state=random_state).n_clusters for random_state in (0, 1)] == [2, 2]


def test_one_column_has_gaps_by_chance():
    X = 10.0 * np.repeat(np.arange(3), 500)[:, None] + np.random.default_rng(0).normal(size=(1_500, 1))
    assert select_n_clusters(X, n_halves=4, random_state=0).n_clusters == 3


def test_a_few_distinct_rows_with_many_copies_are_the_clusters():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 50, axis=0)
    with warnings.catch_warnings(action="error"):
        found = select_n_clusters(X, random_state=0)
    assert found.n_clusters == 4
    assert (
        found.reason == "4 clusters: there are only 4 distinct rows, each with 50 copies or more, so each is a cluster."
    )
    assert found.has_structure is None
    assert select_n_clusters(X, 3, random_state=0).n_clusters == 2
    rare = select_n_clusters(X, sample_weight=np.r_[3, np.zeros(49), np.ones(150)], random_state=0)
    assert rare.n_clusters == 2
    assert "nothing to compare" in rare.reason


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
