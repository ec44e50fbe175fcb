"""The search for settings: choice, restrictions, determinism, Ctrl-C."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

import biclique.selection.settings_search as module
from biclique import BicliqueSpectralClustering
from biclique.exceptions import DataError, ParameterError, SelectionWarning
from biclique.selection import Candidate, SelectionResult, select_settings
from biclique.selection.result import SMALL_MARGIN, Records
from tests import oracles

FEW = (
    Candidate("nearest_neighbors", 2.0),
    Candidate("nearest_neighbors", 4.0),
    Candidate("rbf", 2.0, gamma_factor=1.0, row_normalize=True),
    Candidate("rbf", 4.0, gamma_factor=1.0, row_normalize=True),
    Candidate("rbf", 4.0, gamma_factor=0.25, row_normalize=False),
)


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(240, noise=0.06, random_state=0)
    X.flags.writeable = False
    return X, y


@pytest.fixture(scope="module")
def found(moons):
    return select_settings(moons[0], 2, candidates=FEW, random_state=0)


def same(a: SelectionResult, b: SelectionResult) -> bool:
    return a.judged == b.judged and a.reason == b.reason and np.array_equal(a.labels, b.labels)


def test_moons_get_a_similarity_that_follows_them(moons, found):
    X, y = moons
    assert found.chosen.order == 2
    index = module.distinct_rows(X, np.ones(len(X))).index
    assert adjusted_rand_score(y, found.labels[index]) > 0.95
    model = BicliqueSpectralClustering(2, random_state=0, **found.parameters).fit(X)
    assert adjusted_rand_score(model.labels_, found.labels[index]) > 0.99


def test_criteria_are_those_of_the_definitions(moons):
    """By fits of the public estimator, pairs counted one by one."""
    X = moons[0][:80]
    result = select_settings(X, 2, candidates=FEW, n_halves=2, random_state=3)
    vertices = module.distinct_rows(X, np.ones(len(X)))
    halves = module.split_halves(80, 2, 2, np.random.RandomState(3))
    assert [len(half) for half in halves] == [40, 40]
    assert sorted(np.concatenate(halves).tolist()) == list(range(80))

    def labels(candidate, rows):
        options = {"affinity": candidate.affinity, "order": candidate.order, "row_normalize": candidate.row_normalize}
        model = BicliqueSpectralClustering(2, random_state=3, **options)
        if candidate.gamma_factor is not None:
            rule = BicliqueSpectralClustering(2, order=4, random_state=3).plan(rows).gamma  # which nothing raises
            model.set_params(gamma=candidate.gamma_factor * rule)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit_predict(rows)

    A = oracles.mutual_neighbors(vertices.data)
    whole = [labels(one, vertices.data) for one in FEW]
    least = np.sqrt(80 / 2)
    able = [i for i in range(len(FEW)) if np.bincount(whole[i]).min() >= least]
    shared = dict(
        zip(
            able,
            oracles.family_consensus([whole[i] for i in able], [FEW[i].family for i in able]),
            strict=True,
        )
    )
    table = {one.name: one for one in result.judged}
    for i, candidate in enumerate(FEW):
        own = table[candidate.name]
        assert own.cut == pytest.approx(oracles.kept_inside(A, whole[i]))
        of_halves = [labels(candidate, vertices.data[half]) for half in halves]
        assert own.stability == pytest.approx(oracles.half_agreement(whole[i], halves, of_halves))
        assert bool(own.dropped) == (i not in able)
        if i in able:
            assert own.consensus == pytest.approx(shared[i])
    ranked = [one for one in result.judged if one.doubt is not None]
    criteria = [[round(getattr(one, name), 9) for one in ranked] for name in ("cut", "stability", "consensus")]
    least = (2 / A.sum(), 1 / vertices.n, 1 / vertices.n)
    np.testing.assert_allclose([one.doubt for one in ranked], oracles.open_doubt(criteria, (2, 1, 1), least))
    assert ranked[0].candidate == result.chosen
    assert ranked == sorted(ranked, key=lambda one: (one.cut < 1, one.doubt))


def test_the_result_speaks(found):
    frame = found.candidates
    assert frame["name"].tolist()[0] == found.chosen.name
    assert len(frame) == len(FEW) + 1  # k-means
    assert found.runner_up in FEW
    assert found.reason.startswith(found.chosen.name)
    assert found.runner_up.name in found.reason
    assert found.chosen.name in found.summary()
    assert module.KMEANS in found.summary()
    assert str(found) == found.summary()
    assert found.margin == pytest.approx(found.judged[1].doubt / found.judged[0].doubt)
    assert found.ranked[0] == found.chosen


def test_clusters_that_part_no_neighbours_come_first(monkeypatch):
    X, y = make_blobs(200, centers=[[0, 0], [9, 0]], random_state=0)
    split = np.where(np.arange(200) == 0, 1 - y, y)

    def fit(search, numbers, vertices):
        return {i: (y if i == 0 else split)[rows(vertices)] for i in numbers}

    def rows(vertices):
        return [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in vertices.data]

    monkeypatch.setattr(module, "fit_candidates", fit)
    monkeypatch.setattr(module, "_stability", lambda fits, number, search: [0.5, 1, 1, 1, 1, 1][number])
    result = select_settings(X, 2, candidates=FEW, random_state=0)
    best = result.judged[0]
    assert (best.name, best.cut) == (FEW[0].name, 1)
    assert result.judged[1].cut < 1
    assert result.judged[1].doubt < best.doubt
    assert "it parts no neighbours" in result.reason
    assert result.runner_up.name in result.reason
    monkeypatch.setattr(module, "parts_nothing", lambda cut: False)
    assert select_settings(X, 2, candidates=FEW, random_state=0).chosen != FEW[0]


def test_records_stand_in_for_pandas(found, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    table = found.candidates
    assert isinstance(table, Records)
    assert table["name"][0] == table[0]["name"] == found.chosen.name
    assert len(table) == len(FEW) + 1
    assert [row["name"] for row in table] == table["name"]
    assert repr(table).count("\n") == len(table)


def test_plot_takes_and_returns_axes(found):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    assert found.plot(axes) is axes
    assert found.plot().get_xlabel().startswith("neutral cut")


def test_a_small_margin_is_said():
    X = np.random.RandomState(0).uniform(size=(150, 2))
    result = select_settings(X, 3, gamma="auto", order="auto", n_halves=2, random_state=0)
    assert (result.margin <= SMALL_MARGIN) == ("a small margin" in result.reason)


def test_same_bits_for_any_number_of_threads(moons, found):
    assert same(found, select_settings(moons[0], 2, candidates=FEW, random_state=0, n_jobs=1))
    assert same(found, select_settings(moons[0], 2, candidates=FEW, random_state=0, n_jobs=2))
    state = np.random.RandomState(5)
    twice = [select_settings(moons[0], 2, candidates=FEW[:2], random_state=state) for _ in range(2)]
    assert twice[0].rows == twice[1].rows
    again = select_settings(moons[0], 2, candidates=FEW[:2], random_state=np.random.RandomState(5))
    assert same(twice[0], again)


def test_candidates_with_the_same_clusters_are_one():
    X, _ = make_blobs(150, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    result = select_settings(X, 3, candidates=FEW, n_halves=2, random_state=0)
    assert result.runner_up is None
    assert result.margin is None
    assert "all candidates agree" in result.reason
    assert sum(bool(one.same_as) for one in result.judged) == len(FEW) - 1


@pytest.mark.parametrize(("n", "k"), [(104, 3), (105, 3), (108, 3), (400, 4), (399, 4), (1000, 7), (9, 4)])
def test_the_least_size_is_a_whole_number_of_rows(n, k):
    needed = math.isqrt(n // k)  # ⌊√(n/k)⌋
    assert needed - 1 < module.least_size(np.ones(n), k) <= needed
    assert needed - 1 < module.least_size(np.full(n, 0.1), k) / 0.1 <= needed
    assert module.least_size(np.ones(n), k) == pytest.approx(needed, rel=2e-3)
    uneven = np.append(np.ones(n - 1), 1e-6)  # hardly rounded: one row weighs next to nothing
    assert module.least_size(uneven, k) == pytest.approx(math.sqrt((n - 1) / k), rel=2e-3)
    heavy = np.append(np.ones(n), 2.0)  # a row that is there twice
    assert needed - 1 < module.least_size(heavy, k) <= math.sqrt((n + 2) / k) * 1.2


def test_dust_is_dropped():
    X = np.concatenate([make_blobs(200, centers=[[0, 0], [6, 0]], random_state=0)[0], [[40.0, 40.0]]])
    low, high = Candidate("rbf", 2.0, gamma=0.004), Candidate("rbf", 4.0, gamma=0.1)
    result = select_settings(X, 2, candidates=(low, high), n_halves=2, random_state=0)
    dropped = {one.candidate: one.dropped for one in result.judged if one.candidate is not None}
    assert result.chosen == high
    assert dropped[low] == "a cluster of 1 rows, 10.0 needed"
    # Where every candidate leaves dust, the least bad is taken, and that is said.
    alone = select_settings(X, 2, candidates=(low,), n_halves=2, random_state=0)
    assert alone.chosen == low
    assert "Every candidate has a cluster below 10.0 rows; the largest smallest one has 1." in alone.reason


def test_weights_are_repeated_rows(moons):
    X = moons[0][:60]
    weights = np.random.RandomState(0).randint(1, 4, 60)
    by_weight = select_settings(X, 2, candidates=FEW, sample_weight=weights, n_halves=2, random_state=0)
    by_rows = select_settings(np.repeat(X, weights, axis=0), 2, candidates=FEW, n_halves=2, random_state=0)
    assert same(by_weight, by_rows)


def test_sparse_rows_are_rows(moons):
    X = moons[0][:100]
    found = [select_settings(rows, 2, candidates=FEW[:3], n_halves=0) for rows in (X, sparse.csr_array(X))]
    dense, thin = ({one.name: one.cut for one in result.judged} for result in found)
    assert dense == pytest.approx(thin)  # halves differ: sparse rows have other digests


def test_a_given_matrix_varies_the_order_alone(moons):
    X = moons[0]
    K = np.exp(-30 * ((X[:, None] - X[None]) ** 2).sum(-1))
    for given, orders in (
        (K, {"auto", 2, 4, np.inf}),
        (sparse.csr_array(np.where(K > 0.01, K, 0)), {"auto", 2, 2.1, 4}),
    ):
        result = select_settings(given, 2, affinity="precomputed", gamma="auto", n_halves=2, random_state=0)
        assert {one.candidate.order for one in result.judged} == orders
        assert {one.candidate.affinity for one in result.judged} == {"precomputed"}
        assert result.gamma is None
    graph = sparse.csr_array(np.where(K > 0.5, 1 - K, 0))
    with pytest.raises(DataError, match="a graph of distances"):
        select_settings(graph, 2, affinity="precomputed_nearest_neighbors", gamma="auto")


def test_few_rows_have_no_halves(moons):
    X = moons[0][:20]
    result = select_settings(X, 2, candidates=FEW[:3], random_state=0)
    assert all(one.stability is None for one in result.judged)
    nothing = select_settings(X[:3], 3, candidates=FEW, random_state=0)
    assert nothing.chosen == FEW[0]
    assert "only 3 distinct rows" in nothing.reason
    assert "one cluster" in select_settings(X, 1, random_state=0).reason


def test_bad_arguments(moons):
    X = moons[0]
    with pytest.raises(ParameterError, match="nothing is to be selected"):
        select_settings(X, 2, affinity="rbf", gamma=1.0, order=2)
    with pytest.raises(ParameterError, match="n_halves must be a whole number of at least 0, got -1"):
        select_settings(X, 2, n_halves=-1)
    with pytest.raises(ParameterError, match="affinity must be one of"):
        select_settings(X, 2, affinity="selects")
    with pytest.raises(DataError, match="NaN"):
        select_settings(np.where(X > 1.9, np.nan, X), 2)


def test_ctrl_c_returns_the_best_so_far(moons, monkeypatch):
    fit, calls = module.fit_candidates, []

    def interrupted(search, numbers, vertices):
        calls.append(numbers)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return fit(search, numbers, vertices)

    monkeypatch.setattr(module, "fit_candidates", interrupted)
    with pytest.warns(SelectionWarning, match="was interrupted, and the best so far is taken"):
        result = select_settings(moons[0], 2, candidates=FEW, random_state=0, n_jobs=1)
    assert result.interrupted
    assert result.chosen in FEW[:4]
    assert "not tried" in {one.dropped for one in result.judged}
    calls.extend([None] * 3)
    with pytest.raises(KeyboardInterrupt):  # before anything is fitted there is nothing to return
        select_settings(moons[0], 2, candidates=FEW, random_state=0, n_jobs=1)


def test_progress_is_shown(moons, capsys):
    select_settings(moons[0][:60], 2, candidates=FEW[:2], random_state=0, verbose=1)
    assert "candidates 100%" in capsys.readouterr().err
