"""Drills: a kernel of one's own is one class and one entry in a table."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from biclique.cli import main
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import ParameterError
from biclique.features.maps import make_map, map_kind
from biclique.kernels import KERNELS, Kernel
from biclique.kernels.kernel import Form
from biclique.kernels.named import GAMMA_KERNELS, KERNEL_NAMES, make_kernel
from tests.calls import refuses


class Rational(Kernel):
    """κ(x, y) = 1 / (1 + γ |x − y|²)."""

    name = "rational"

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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cpu"}, "'rational'.*device=None"),
        ({"device": "cpu", "gram": "nystroem"}, "'rational'.*device=None"),
        ({"gram": "features"}, "not 'rational': use gram='nystroem'"),
    ],
)
def test_what_cannot_take_it_names_the_way_out(blobs, options, message):
    refuses(ParameterError, message, model(affinity=Rational(0.5), **options).fit, blobs[0])


def test_a_kernel_with_a_form_has_features_of_it(blobs):
    class Shifted(Kernel):
        """κ(x, y) = 1 + ⟨x, y⟩."""

        form = Form("power", coef0=1.0)

        def block(self, X, Y):
            return 1 + X @ Y.T

    X, _ = blobs
    assert map_kind("features", Shifted(), 5, "auto") == "exact"
    phi = make_map("exact", Shifted(), X, 0, random=np.random.RandomState(0), dtype=np.float64).features(X)
    np.testing.assert_allclose(phi @ phi.T, Shifted().block(X, X), rtol=1e-12)


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
    refuses(ParameterError, "affinity must be one of 'rbf'", make_kernel, "rational", gamma=1.0)
    with pytest.raises(SystemExit):
        main(["cluster", "iris", "-k", "3", "--affinity", "rational"])
    assert "rational" in capsys.readouterr().err


@pytest.mark.usefixtures("rational")
def test_a_dissimilarity_makes_the_bandwidth_rule_work(blobs, monkeypatch):
    monkeypatch.setattr(Rational, "dissimilarity", lambda _, X: cdist(X, X, "sqeuclidean"), raising=False)
    assert model(affinity="rational").fit(blobs[0]).gamma_ == pytest.approx(model(affinity="rbf").fit(blobs[0]).gamma_)
