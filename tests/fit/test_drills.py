"""Drills: a Gram operator, a feature map, an assigner and a row source of one's own are one class and one entry each.

They are known to ``fit``, ``predict``, ``plan`` and the command line while the entry is there, and gone with it. Drills
of a kernel and of a table format are in ``tests/kernels/test_own_kernel.py`` and ``tests/io/test_new_format.py``.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueKernelKMeans, BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.cli import main
from biclique.exceptions import ApproximationWarning, DataError, MemoryLimitError, ParameterError
from biclique.features.maps import FEATURE_MAPS, FeatureMap
from biclique.fit.settings import FACTORED, GRAM_NAMES
from biclique.gram import GRAMS, GramOperator
from biclique.kernels.held import HeldRows
from biclique.rows.array import OPENERS, Opener
from biclique.runtime.memory import data_bytes
from biclique.spectral.assign import ASSIGNERS, Assigner
from biclique.spectral.rounding import Assignment, EmbeddingRule, NearestCentre, kmeans
from tests.optional import Optional, needs
from tests.rows.pieces import PieceRows

da = Optional("dask.array")


def model(**parameters):
    settings = {"n_clusters": 4, "affinity": "rbf", "random_state": 0, "memory_limit": "1GB", **parameters}
    return BicliqueSpectralClustering(**settings)


OF_RBF = ("--affinity", "rbf")


@pytest.fixture
def table(blobs, tmp_path):
    path = tmp_path / "rows.csv"
    np.savetxt(path, blobs[0], delimiter=",", header="a,b,c,d,e", comments="")
    return str(path)


def refused_by_the_command_line(table, capsys, *options):
    with pytest.raises(SystemExit):
        main(["cluster", table, "-k", "4", *options])
    return "invalid choice" in capsys.readouterr().err


# A Gram operator


class Rowwise(GramOperator):
    """K from rows that are computed anew, one at a time."""

    name, dtype = "rowwise", np.dtype(np.float64)

    def __init__(self, kernel, X, *, dtype, n_jobs, memory_limit, tick):  # noqa: ARG002
        self.held, self.n = HeldRows(kernel, X, dtype), X.shape[0]

    def matmat(self, V):
        return np.concatenate([self.held.kernel.block(x[None], self.held.rows) @ V for x in self.held.rows])

    def diagonal(self):
        return self.held.kernel.diagonal(self.held.rows)

    def cross(self, Y):
        return self.held.cross(Y)

    def training(self):
        return self.held


@pytest.fixture
def rowwise(monkeypatch):
    monkeypatch.setitem(GRAMS, "rowwise", Rowwise)


@pytest.mark.usefixtures("rowwise")
@pytest.mark.parametrize("parameters", [{}, {"modelling": "symmetric"}, {"assign_labels": "kernel_kmeans"}], ids=str)
def test_a_gram_operator_is_fitted(blobs, parameters):
    X, y = blobs
    found, stored = (model(gram=gram, order=4, **parameters).fit(X) for gram in ("rowwise", "dense"))
    assert adjusted_rand_score(y, found.labels_) == 1
    assert np.array_equal(found.labels_, stored.labels_)
    assert (found.gram_, found.gram_reason_, found.precision_) == ("rowwise", "as asked for", "float64")
    np.testing.assert_allclose(found.eigenvalues_, stored.eigenvalues_, atol=1e-9)
    new = X[:20] + 1e-3
    assert np.array_equal(found.predict(new), stored.predict(new))
    np.testing.assert_allclose(np.abs(found.transform(new)), np.abs(stored.transform(new)), atol=1e-6)


@pytest.mark.usefixtures("rowwise")
def test_a_gram_operator_is_planned(blobs, monkeypatch):
    X, _ = blobs
    plan = model(gram="rowwise").plan(X)
    assert (plan.gram, plan.gram_reason, plan.precision, plan.tolerance) == ("rowwise", "as asked for", "float64", 1e-8)
    assert plan.seconds > 0
    assert "gram='rowwise': as asked for" in str(plan)
    # What the class says of itself:
    monkeypatch.setattr(Rowwise, "bytes_for", classmethod(lambda _, n, d, vectors, dtype: 1000 * n * d))
    more = model(gram="rowwise").plan(X)
    basis = plan.bytes - data_bytes(X) - GramOperator.bytes_for(300, 5, plan.block, np.float64)
    assert more.bytes == data_bytes(X) + 1000 * 300 * 5 + basis
    monkeypatch.setattr(Rowwise, "passes_are_cheap", False)
    monkeypatch.setattr(Rowwise, "takes_precision", True)
    plan = model(gram="rowwise").plan(X)
    assert (plan.precision, plan.tolerance) == ("float32", 1e-3)
    with pytest.raises(MemoryLimitError, match="gram='rowwise' for 300 distinct rows and 3 eigenvectors needs"):
        model(gram="rowwise", memory_limit="1MB").plan(X)


@pytest.mark.usefixtures("rowwise")
def test_a_gram_operator_is_refused_where_it_cannot_be(blobs):
    with pytest.raises(ParameterError, match=r"gram='rowwise' works on the host, and device='cpu'.*'auto'"):
        model(gram="rowwise", device="cpu").plan(blobs[0])


@pytest.mark.usefixtures("rowwise")
def test_a_gram_operator_on_the_command_line(table, capsys):
    assert main(["cluster", table, "-k", "4", *OF_RBF, "--gram", "rowwise"]) == 0
    assert "rowwise" in capsys.readouterr().out


def test_the_gram_operator_is_gone_with_its_entry(blobs, table, capsys):
    assert "rowwise" not in GRAM_NAMES
    with pytest.raises(
        ParameterError, match="gram must be one of 'auto', 'dense', 'tiled', 'fourier', 'nystroem', 'features', got"
    ):
        model(gram="rowwise").fit(blobs[0])
    assert refused_by_the_command_line(table, capsys, "--gram", "rowwise")


# A feature map


class Bumps(FeatureMap):
    """φ(x) = κ(x, z_j)/√p for p rows z_j drawn at random: landmarks without W^(−1/2)."""

    name = "bumps"

    def __init__(self, kernel, rows, dtype):
        self.kernel, self.rows, self.dtype, self.size = kernel, rows, np.dtype(dtype), len(rows)

    @classmethod
    def make(cls, kernel, pool, size, *, random, dtype):
        return cls(kernel, pool[random.choice(len(pool), min(size, len(pool)), replace=False)], dtype)

    def columns(self, X):
        return (self.kernel.block(X, self.rows) / np.sqrt(self.size)).astype(self.dtype)


@pytest.fixture
def bumps(monkeypatch):
    monkeypatch.setitem(FEATURE_MAPS, "bumps", Bumps)


@pytest.mark.usefixtures("bumps")
@pytest.mark.parametrize("more", [{}, {"modelling": "symmetric"}], ids=["three passes", "an operator"])
def test_a_feature_map_is_asked_for_by_name(blobs, more):
    X, y = blobs
    assert list(FACTORED) == ["nystroem", "bumps", "features"]
    found = model(gram="bumps", rank=50, order=4, gamma=0.1, **more).fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1
    assert (found.gram_, found.rank_) == ("bumps", 50)
    assert found.approximation_.kernel > 0.01  # it is another kernel
    assert adjusted_rand_score(y, found.predict(X + 1e-3)) == 1


@pytest.mark.usefixtures("bumps")
def test_a_feature_map_is_planned(blobs):
    plan = model(gram="bumps", rank=50).plan(blobs[0])
    assert (plan.way, plan.gram, plan.gram_reason, plan.rank) == ("factored", "bumps", "as asked for", 50)
    assert plan.seconds > 0
    with pytest.raises(ParameterError, match=r"gram='bumps' is not supported on a device: use gram='nystroem'"):
        model(gram="bumps", device="cpu").plan(blobs[0])


@pytest.mark.usefixtures("bumps")
def test_a_feature_map_on_the_command_line(table, capsys):
    options = ["-k", "4", *OF_RBF, "--gram", "bumps", "--rank", "50", "--order", "4"]
    assert main(["cluster", table, *options]) == 0
    assert "bumps" in capsys.readouterr().out


def test_the_feature_map_is_gone_with_its_entry(blobs, table, capsys):
    with pytest.raises(
        ParameterError, match="gram must be one of 'auto', 'dense', 'tiled', 'fourier', 'nystroem', 'features', got"
    ):
        model(gram="bumps").fit(blobs[0])
    assert refused_by_the_command_line(table, capsys, "--gram", "bumps")


# Assigners


@dataclass(frozen=True)
class Signs(EmbeddingRule):
    """Two clusters: whether the first column after the trivial one is positive."""

    def labels(self, embedding):
        return (embedding[:, 1] > 0).astype(int)

    def keeping(self, clusters):  # noqa: ARG002
        return self


def by_signs(embedding, weights, n_clusters, *, cut=None, n_init, random_state):
    rule = Signs()
    return Assignment(rule.labels(embedding), rule)


@dataclass(frozen=True)
class MostSimilarGroup:
    """The group with the largest mean similarity: a rule of kernel values."""

    groups: np.ndarray  # (n, k), one over the size of each row's group

    def of_new(self, new):
        similar = new.cross().matmat(self.groups)
        return similar.argmax(axis=1), similar.max(axis=1) > 0

    def keeping(self, clusters):
        return MostSimilarGroup(self.groups[:, clusters])


def by_similarity(embedding, weights, n_clusters, *, cut=None, **options):
    start = kmeans(embedding, weights, n_clusters, **options)
    groups = np.eye(n_clusters)[start.labels]
    return Assignment(start.labels, MostSimilarGroup(groups / groups.sum(axis=0)), np.array([cut.total]))


@pytest.fixture
def assigners(monkeypatch):
    monkeypatch.setitem(ASSIGNERS, "signs", Assigner(by_signs))
    monkeypatch.setitem(ASSIGNERS, "similarity", Assigner(by_similarity, needs_cut=True))


WAYS = [
    {},
    {"gram": "tiled"},
    {"gram": "nystroem", "rank": 100},
    {"affinity": "nearest_neighbors"},
    {"affinity": "neighborhoods"},
]


@pytest.mark.usefixtures("assigners")
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", ["signs", "similarity"])
def test_an_assigner_is_fitted(blobs, name, way):
    X, y = blobs
    if name == "signs":
        X, y = X[y < 2], y[y < 2]
    found = model(n_clusters=y.max() + 1, assign_labels=name, order=4, **way).fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1
    assert np.array_equal(found.predict(X), found.labels_)
    assert adjusted_rand_score(found.labels_, found.predict(X + 1e-3)) == 1
    assert hasattr(found, "cut_history_") == (name == "similarity")
    assert found.plan(X).settings.assigning.needs_cut == (name == "similarity")


@pytest.mark.usefixtures("assigners")
@needs("dask")
def test_an_assigner_in_chunks(blobs):
    rows = da.from_array(blobs[0], chunks=(100, -1))
    found = model(n_clusters=2, assign_labels="signs", gram="nystroem", rank=100, order=4).fit(rows)
    assert np.array_equal(found.predict(blobs[0]), found.labels_.compute())
    allowed = "assign_labels='kmeans', 'cluster_qr', 'discretize' or 'signs':"
    with pytest.raises(ParameterError, match=allowed):
        model(assign_labels="similarity").fit(rows)
    with pytest.raises(ParameterError, match=allowed):
        model(assign_labels="similarity", device="cpu").plan(blobs[0])


@pytest.mark.usefixtures("assigners")
def test_assigners_on_the_command_line(table):
    for name in ("signs", "similarity"):
        assert main(["cluster", table, "-k", "2", "--assign-labels", name]) == 0


def test_assigners_are_gone_with_their_entries(blobs, table, capsys):
    with pytest.raises(ParameterError, match=r"assign_labels must be one of 'kmeans', .*'kernel_kmeans', got 'signs'"):
        model(assign_labels="signs").fit(blobs[0])
    assert refused_by_the_command_line(table, capsys, "--assign-labels", "signs")
    assert isinstance(model().fit(blobs[0])._fitted.rule, NearestCentre)


# A row source


class Pile:
    """Rows of other people's: a list of arrays, and names of their columns."""

    def __init__(self, pieces, names=None):
        self.pieces, self.names, self.passes = pieces, names, 0


class PileRows(PieceRows):
    """The pile as a row source."""

    name = "the pile"

    def __init__(self, pile, sample_weight, memory_limit, check):  # noqa: ARG002
        n = sum(map(len, pile.pieces))
        weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        ends = np.cumsum([len(piece) for piece in pile.pieces])
        super().__init__(zip(pile.pieces, np.split(weights, ends[:-1]), strict=True))
        self.weights, self.names, self.pile, self.check = weights, pile.names, pile, check

    def draw(self, size, random):
        rows, weights = super().draw(size, random)
        self.check(rows, range(len(rows)))
        return rows, weights

    def _blocks(self):
        self.pile.passes += 1
        for block in super()._blocks():
            self.check(block.rows, range(block.start, block.start + len(block.rows)))
            yield block


@pytest.fixture
def pile(monkeypatch, blobs):
    monkeypatch.setitem(OPENERS, "pile", Opener(lambda X: isinstance(X, Pile), PileRows))
    return Pile([blobs[0][:130], blobs[0][130:140], blobs[0][140:]], names=list("abcde"))


def test_a_row_source_is_fitted_in_three_passes(blobs, pile):
    X, y = blobs
    with pytest.warns(ApproximationWarning, match=r"gram='nystroem' of rank 60 \(approximate: the rows are read in"):
        found = model(rank=60, order=4).fit(pile)
    assert pile.passes == 3
    assert adjusted_rand_score(y, found.labels_) == 1
    assert not hasattr(found, "embedding_")
    assert found.n_features_in_ == 5
    assert found.feature_names_in_.tolist() == list("abcde")
    assert np.array_equal(found.predict(pile), found.labels_)
    assert pile.passes == 4
    assert found.transform(pile).shape == (300, 4)
    held = model(rank=60, order=4, gram="nystroem").fit(X)
    assert adjusted_rand_score(held.labels_, found.labels_) == 1
    embedding = BicliqueSpectralEmbedding(n_components=2, affinity="rbf", gram="nystroem", rank=60, random_state=0)
    assert embedding.fit_transform(pile).shape == (300, 2)


def test_a_row_source_is_fitted_by_the_default(blobs, pile):
    found, held = (model(affinity="neighborhoods", rank=100).fit(rows) for rows in (pile, blobs[0]))
    assert pile.passes == 3
    assert adjusted_rand_score(blobs[1], found.labels_) == 1
    assert adjusted_rand_score(held.labels_, found.labels_) == 1
    assert not hasattr(found, "embedding_")
    assert np.array_equal(found.predict(pile), found.labels_)
    assert BicliqueSpectralEmbedding(n_components=2, rank=100).fit_transform(pile).shape == (300, 2)


def test_a_row_source_is_planned_without_a_pass(pile):
    for affinity, way in (("rbf", "factored"), ("neighborhoods", "neighborhoods")):
        plan = model(affinity=affinity, rank=60).plan(pile)
        assert (plan.way, plan.rows, pile.passes) == (way, 300, 0)


def test_weights_of_a_row_source(blobs, pile):
    X, _ = blobs
    weights = np.arange(300) % 3
    found = model(rank=60, order=4, gram="nystroem").fit(pile, sample_weight=weights)
    held = model(rank=60, order=4, gram="nystroem").fit(X, sample_weight=weights)
    np.testing.assert_allclose(found.eigenvalues_, held.eigenvalues_, atol=0.05)


def test_what_a_row_source_is_refused_with(blobs, pile):
    other = Pile([blobs[0][:, :3]])
    found = model(rank=60, order=4, gram="nystroem").fit(pile)
    with pytest.raises(DataError, match="the pile has 3 columns, the model was fitted with 5"):
        found.predict(other)
    with pytest.raises(DataError, match="the pile: column 1 is 'c', and was 'b' when the model was fitted"):
        found.predict(Pile(pile.pieces, names=list("acbde")))
    with pytest.raises(DataError, match="a model with gram_='dense' takes rows in memory"):
        model().fit(blobs[0]).predict(pile)
    with pytest.raises(ParameterError, match="device='cpu' needs X in memory"):
        model(device="cpu").fit(pile)
    with pytest.raises(DataError, match="X is a Pile, and rows in memory are needed here"):
        BicliqueKernelKMeans(4).fit(pile)
    with pytest.raises(DataError, match="affinity='chi2' needs non-negative X"):
        model(affinity="chi2", gram="nystroem", rank=20).fit(Pile([-blobs[0]]))


def test_the_row_source_is_gone_with_its_entry(blobs):
    with pytest.raises((TypeError, ValueError)):
        model().fit(Pile([blobs[0]]))
