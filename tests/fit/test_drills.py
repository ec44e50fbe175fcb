"""Drills: a Gram operator, a feature map and an assigner of one's own are one class and one entry each.

They are known to ``fit``, ``predict`` and the command line while the entry is there, and gone with it. Drills of a
kernel and of a table format are in ``tests/kernels`` and with the tables.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.cli import main
from biclique.exceptions import ParameterError
from biclique.features.maps import FEATURE_MAPS, FeatureMap
from biclique.fit.settings import FACTORED
from biclique.gram.by_name import GRAMS
from biclique.gram.operator import GramOperator
from biclique.kernels.held import HeldRows
from biclique.spectral.assign import ASSIGNERS, Assigner
from biclique.spectral.rounding import Assignment, EmbeddingRule


def model(**parameters):
    return BicliqueSpectralClustering(**{"n_clusters": 4, "affinity": "rbf", "random_state": 0, **parameters})


@pytest.fixture
def table(blobs, tmp_path):
    path = tmp_path / "rows.csv"
    np.savetxt(path, blobs[0], delimiter=",", header="a,b,c,d,e", comments="")
    return str(path)


class Rowwise(GramOperator):
    """K from rows that are computed anew, one at a time."""

    name, dtype = "rowwise", np.dtype(np.float64)

    def __init__(self, kernel, X, *, dtype, n_jobs, tick):  # noqa: ARG002
        self.held, self.n = HeldRows(kernel, X, dtype), X.shape[0]

    def matmat(self, V):
        return np.concatenate([self.held.kernel.block(x[None], self.held.rows) @ V for x in self.held.rows])

    def diagonal(self):
        return self.held.kernel.diagonal(self.held.rows)

    def cross(self, Y):
        return self.held.cross(Y)

    def training(self):
        return self.held


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


@pytest.fixture
def entries(monkeypatch):
    monkeypatch.setitem(GRAMS, "rowwise", Rowwise)
    monkeypatch.setitem(FEATURE_MAPS, "bumps", Bumps)
    monkeypatch.setitem(ASSIGNERS, "signs", Assigner(by_signs))


@pytest.mark.usefixtures("entries")
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


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("more", [{}, {"modelling": "symmetric"}], ids=["three passes", "an operator"])
def test_a_feature_map_is_asked_for_by_name(blobs, more):
    X, y = blobs
    assert list(FACTORED) == ["nystroem", "bumps", "features"]
    found = model(gram="bumps", rank=50, order=4, gamma=0.1, **more).fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1
    assert (found.gram_, found.rank_) == ("bumps", 50)
    assert found.approximation_.kernel > 0.01  # it is another kernel
    assert adjusted_rand_score(y, found.predict(X + 1e-3)) == 1


WAYS = [
    {},
    {"gram": "tiled"},
    {"gram": "nystroem", "rank": 100},
    {"affinity": "nearest_neighbors"},
    {"affinity": "neighborhoods"},
]


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_assigner_is_fitted(blobs, way):
    X, y = (part[blobs[1] < 2] for part in blobs)
    found = model(n_clusters=2, assign_labels="signs", order=4, **way).fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1
    assert np.array_equal(found.predict(X), found.labels_)
    assert adjusted_rand_score(found.labels_, found.predict(X + 1e-3)) == 1


@pytest.mark.usefixtures("entries")
def test_what_a_device_has_no_counterpart_for_is_refused(blobs):
    for parameters, message in (
        ({"gram": "rowwise"}, r"gram='rowwise' works on the host, and device='cpu'.*'auto'"),
        ({"gram": "bumps"}, r"gram='bumps' is not supported on a device: use gram='nystroem'"),
        ({"assign_labels": "kernel_kmeans"}, "'kmeans' or 'cluster_qr' or 'discretize' or 'signs':"),
    ):
        with pytest.raises(ParameterError, match=message):
            model(device="cpu", **parameters).fit(blobs[0])


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize(
    "options",
    [
        ["--affinity", "rbf", "--gram", "rowwise"],
        ["--affinity", "rbf", "--gram", "bumps", "--rank", "50", "--order", "4"],
        ["--assign-labels", "signs"],
    ],
    ids=" ".join,
)
def test_entries_on_the_command_line(table, capsys, options):
    assert main(["cluster", table, "-k", "2", *options]) == 0
    shown = capsys.readouterr().out
    assert "--gram" not in options or options[3] in shown


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gram", "'auto', 'dense', 'tiled', 'fourier', 'nystroem', 'features'"),
        ("assign_labels", "'kmeans', 'cluster_qr', 'discretize', 'kernel_kmeans'"),
    ],
)
def test_names_without_an_entry_are_refused_with_those_that_have_one(blobs, table, capsys, name, known):
    with pytest.raises(ParameterError, match=f"{name} must be one of {known}, got 'rowwise'"):
        model(**{name: "rowwise"}).fit(blobs[0])
    with pytest.raises(SystemExit, match="2"):
        main(["cluster", table, "-k", "4", f"--{name.replace('_', '-')}", "rowwise"])
    assert "invalid choice: 'rowwise'" in capsys.readouterr().err
