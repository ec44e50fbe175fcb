"""Drills: a kernel, a feature map and a Gram operator of one's own are one class and one entry in a table each."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from biclique.cli import main
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import ParameterError
from biclique.features.maps import FEATURE_MAPS, FeatureMap, make_map, map_kind
from biclique.fit.plan import make_gram
from biclique.fit.settings import GRAM_NAMES
from biclique.gram import GRAMS, FactoredGram, GramOperator
from biclique.kernels import GAMMA_KERNELS, KERNEL_NAMES, KERNELS, RBF, Kernel, make_kernel
from biclique.kernels.kernel import HeldRows
from tests.gram.contract import GramContract, frozen


class Rational(Kernel):
    """κ(x, y) = 1 / (1 + γ |x − y|²)."""

    name = "rational"
    has_gamma = True

    def __init__(self, gamma):
        self.gamma = gamma

    def block(self, X, Y):
        return 1 / (1 + self.gamma * cdist(X, Y, "sqeuclidean"))


@pytest.fixture
def rational(monkeypatch):
    monkeypatch.setitem(KERNELS, "rational", Rational)


def model(**parameters):
    return BicliqueSpectralClustering(4, order=4, random_state=0, **parameters)


@pytest.mark.parametrize("gram", ["auto", "dense", "tiled", "nystroem"])
def test_an_instance_is_an_affinity(blobs, gram):
    X, y = blobs
    found = model(affinity=Rational(0.5), gram=gram).fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1
    assert np.array_equal(found.predict(X), found.labels_)
    assert adjusted_rand_score(y, found.predict(X + 1e-3)) == 1


def test_an_instance_reads_rows_in_chunks(blobs, tmp_path):
    X, y = blobs
    np.save(tmp_path / "rows.npy", X)
    found = model(affinity=Rational(0.5), gram="nystroem", rank=40).fit(tmp_path / "rows.npy")
    assert adjusted_rand_score(y, found.labels_) == 1


@pytest.mark.parametrize("gram", ["auto", "nystroem"])
def test_a_device_refuses_it_with_the_way_out(blobs, gram):
    with pytest.raises(ParameterError, match=r"'rational'.*device=None"):
        model(affinity=Rational(0.5), gram=gram, device="cpu").fit(blobs[0])


def test_features_refuse_it_with_the_way_out(blobs):
    with pytest.raises(ParameterError, match="not 'rational': use gram='nystroem'"):
        model(affinity=Rational(0.5), gram="features").fit(blobs[0])


def test_a_kernel_with_features_and_frequencies_of_its_own(blobs):
    class Shifted(Kernel):
        """κ(x, y) = 1 + ⟨x, y⟩: exact features."""

        def block(self, X, Y):
            return 1 + X @ Y.T

        def exact_columns(self, n_columns):
            return 1 + n_columns

        def exact_features(self, X):
            return np.column_stack([np.ones(len(X), dtype=X.dtype), X])

    class Slow(Rational):
        """Frequencies of rbf: E cos⟨ω, x − y⟩ is not its own block, and nobody asks."""

        def frequencies(self, normal):
            return RBF(0.1).frequencies(normal)

    X, _ = blobs
    assert map_kind("features", Shifted(), 5, "auto") == "exact"
    phi = make_map("exact", Shifted(), X, 0, random=np.random.RandomState(0), dtype=np.float64).features(X)
    np.testing.assert_allclose(phi @ phi.T, Shifted().block(X, X), rtol=1e-12)
    assert map_kind("features", Slow(1.0), 5, "auto") == "fourier"
    with pytest.raises(ParameterError, match="takes the 3001 columns"):
        map_kind("features", Shifted(), 3000, "auto")


def test_what_a_kernel_does_not_have_is_told():
    kernel = Rational(1.0)
    assert (kernel.form, kernel.exact_columns(3), kernel.frequencies(np.ones((2, 3)))) == (None, None, None)
    assert kernel.precise(np.ones((2, 3))) is kernel
    for ask in (kernel.left, kernel.right, kernel.exact_features):
        with pytest.raises(TypeError, match="the rational kernel "):
            ask(np.ones((2, 3)))
    X, first, second = np.random.default_rng(0).random((9, 3)), np.array([4, 0, 4, 8]), np.array([1, 1, 2, 8])
    np.testing.assert_allclose(kernel.pairs(X, first, second), kernel.block(X, X)[first, second])


@pytest.mark.usefixtures("rational")
def test_a_name_is_known_everywhere(blobs, tmp_path, capsys):
    X, y = blobs
    assert "rational" in KERNEL_NAMES
    assert "rational" in GAMMA_KERNELS
    found = model(affinity="rational").fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1
    assert found.gamma_ == 1 / X.shape[1]  # it has no dissimilarity
    given = model(affinity="rational", gamma=0.5).fit(X)
    assert np.array_equal(given.labels_, model(affinity=Rational(0.5)).fit(X).labels_)
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c,d,e", comments="")
    assert main(["cluster", str(tmp_path / "rows.csv"), "-k", "4", "--affinity", "rational"]) == 0
    assert "300 rows" in capsys.readouterr().out


def test_the_name_is_gone_with_the_entry(capsys):
    assert "rational" not in KERNEL_NAMES
    assert "rational" not in GAMMA_KERNELS
    with pytest.raises(ParameterError, match="affinity must be one of rbf"):
        make_kernel("rational", gamma=1.0)
    with pytest.raises(SystemExit):
        main(["cluster", "iris", "--affinity", "rational"])
    assert "rational" in capsys.readouterr().err


@pytest.mark.usefixtures("rational")
def test_a_dissimilarity_makes_the_bandwidth_rule_work(blobs, monkeypatch):
    monkeypatch.setattr(Rational, "dissimilarity", lambda _, X: cdist(X, X, "sqeuclidean"), raising=False)
    assert model(affinity="rational").fit(blobs[0]).gamma_ == pytest.approx(model(affinity="rbf").fit(blobs[0]).gamma_)


# A feature map

X = frozen(np.random.default_rng(0).random((120, 3)))


class Moments(FeatureMap):
    """φ(x) = [1, x]: what a kernel looks like from far away."""

    def __init__(self, kernel, n_columns, dtype):
        self.kernel, self.size, self.dtype = kernel, 1 + n_columns, np.dtype(dtype)

    @classmethod
    def make(cls, kernel, pool, size, *, landmarks, random, dtype):  # noqa: ARG003
        return cls(kernel, pool.shape[1], dtype)

    def columns(self, X):
        return np.column_stack([np.ones(len(X)), X]).astype(self.dtype)


class TestOwnMap(GramContract):
    restricts = False

    @pytest.fixture(autouse=True)
    def _entry(self, monkeypatch):
        monkeypatch.setitem(FEATURE_MAPS, "moments", Moments)

    def create(self, n_jobs=None):
        kind = map_kind("moments", RBF(1.0), 3, "auto")
        made = make_map(kind, RBF(1.0), X, 4, random=np.random.RandomState(0), dtype=np.float64)
        return FactoredGram(made, X, n_jobs=n_jobs), X

    def dense(self):
        return 1 + X @ X.T


def test_a_map_that_nobody_knows():
    with pytest.raises(ParameterError, match=r"a feature map must be one of 'nystroem', .* got 'moments'"):
        make_map("moments", RBF(1.0), X, 4, random=np.random.RandomState(0))


# A Gram operator


class Doubled(GramOperator):
    """Twice K, from rows that are computed anew, one at a time."""

    name, dtype = "doubled", np.dtype(np.float64)
    passes_are_cheap = False

    def __init__(self, kernel, X, *, dtype=None, n_jobs=None, memory_limit=None, tick=None):  # noqa: ARG002
        self.held, self.n = HeldRows(kernel, X, np.float64), X.shape[0]

    def matmat(self, V):
        return self.cross(None).matmat(V)

    def diagonal(self):
        return 2 * self.held.kernel.diagonal(self.held.rows)

    def cross(self, Y):
        return Rows(self.held.kernel, self.held.rows if Y is None else self.held.hold(Y), self.held.rows)


class Rows:
    def __init__(self, kernel, Y, X):
        self.kernel, self.Y, self.X = kernel, Y, X

    def matmat(self, V):
        return np.concatenate([2 * self.kernel.block(y[None], self.X) @ V for y in self.Y])

    def diagonal(self):
        return 2 * self.kernel.diagonal(self.Y)


class TestOwnOperator(GramContract):
    restricts = keeps_rows = False

    @pytest.fixture(autouse=True)
    def _entry(self, monkeypatch):
        monkeypatch.setitem(GRAMS, "doubled", Doubled)

    def create(self, n_jobs=None):
        assert "doubled" in GRAM_NAMES
        return make_gram("doubled", RBF(1.0), X, n_jobs=n_jobs, memory_limit=2**30), X

    def dense(self):
        return 2 * RBF(1.0).block(X, X)


def test_an_operator_that_nobody_knows():
    assert list(GRAM_NAMES) == ["auto", "dense", "tiled", "fourier", "nystroem", "features"]
    with pytest.raises(ParameterError, match="stored as one of 'dense', 'tiled', 'fourier', got 'doubled'"):
        make_gram("doubled", RBF(1.0), X, memory_limit=2**30)
