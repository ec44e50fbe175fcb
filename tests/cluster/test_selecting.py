"""affinity, gamma and order "select" in the estimator."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import biclique.selection.candidates as candidates
import biclique.selection.settings_search as settings_search
from biclique import BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.exceptions import ParameterError, SelectionWarning
from biclique.selection import Candidate, SelectionResult

ALL = {"affinity": "select", "gamma": "select", "order": "select"}


@pytest.fixture
def few(monkeypatch):
    """Few candidates and halves: a search is a fraction of a second."""
    monkeypatch.setattr(candidates, "FACTORS", (1.0,))
    monkeypatch.setattr(candidates, "KERNEL_ORDERS", (4.0,))
    monkeypatch.setattr(candidates, "GRAPH_ORDERS", (2.0,))
    monkeypatch.setattr(candidates, "GRAPHS", ((10, "auto"),))
    monkeypatch.setattr(settings_search, "LEAST_HALF", 1000)


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(300, noise=0.06, random_state=0)
    return X, y


@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
@pytest.mark.once
@parametrize_with_checks([BicliqueSpectralClustering(n_clusters=3, **ALL)])
def test_scikit_learn_compatible(estimator, check, few):
    check(estimator)


def test_the_choice_is_fitted_and_explained(moons):
    X, y = moons
    model = BicliqueSpectralClustering(2, affinity="select", order=2, random_state=0).fit(X)
    found = model.selection_
    assert isinstance(found, SelectionResult)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.plan_.selected == found.reason
    assert f"selected: {found.chosen.name}" in str(model.plan_)
    assert model.plan_.settings.kernel.affinity == found.chosen.affinity
    assert model.order_ == found.chosen.order
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    plan = BicliqueSpectralClustering(2, affinity="select", order=2, random_state=0).plan(X)
    assert plan.selected == found.reason
    again = pickle.loads(pickle.dumps(model))
    assert again.selection_.reason == found.reason


def test_gamma_carries_over_as_a_multiple(few, monkeypatch):
    monkeypatch.setattr(candidates, "FACTORS", (4.0,))
    X = make_blobs(400, centers=3, random_state=1)[0]
    auto = BicliqueSpectralClustering(3, random_state=0).fit(X).gamma_
    model = BicliqueSpectralClustering(3, gamma="select", random_state=0).fit(X)
    assert model.gamma_ == pytest.approx(4 * auto)
    assert model.selection_.parameters["gamma"] == pytest.approx(4 * auto)
    assert model.plan_.settings.gamma_factor == 4


def test_only_some_rows_are_compared(few, moons, monkeypatch):
    monkeypatch.setattr(settings_search, "DRAWN_ROWS", 100)
    X = moons[0]
    model = BicliqueSpectralClustering(2, order="select", random_state=0)
    source = model._rows(model._settings().unselected, X, None)
    found = settings_search.search_settings(model._settings(), source, settings_search.Progress(False), n_rows=100)
    assert found.rows == 100


def test_a_choice_that_leaves_dust_in_all_rows_is_replaced(monkeypatch):
    X = np.concatenate([make_blobs(200, centers=[[0, 0], [6, 0]], random_state=0)[0], [[40.0, 40.0]]])
    low, high = Candidate("rbf", 2.0, gamma=0.004), Candidate("rbf", 4.0, gamma=0.1)
    search = settings_search.search_settings

    def first_wrong(settings, source, progress):
        found = search(settings, source, progress, [low, high])
        by_name = {one.candidate: one for one in found.judged if one.candidate is not None}
        wrong = [settings_search.replace(by_name[one], doubt=1.0, dropped="") for one in (low, high)]
        return settings_search.replace(found, judged=tuple(wrong), chosen=low)

    monkeypatch.setattr("biclique.cluster.clustering.search_settings", first_wrong)
    model = BicliqueSpectralClustering(2, **ALL, random_state=0)
    with pytest.warns(SelectionWarning, match=r"leaves a cluster of 0.50% of all rows \(4.97% needed\), so the next"):
        model.fit(X)
    assert model.selection_.chosen == high
    assert model.order_ == 4
    assert np.bincount(model.labels_).min() > 90


def test_weights_and_sparse_rows(few, moons):
    X = moons[0][:80]
    weights = np.random.RandomState(0).randint(1, 4, 80)
    model = BicliqueSpectralClustering(2, **ALL, random_state=0).fit(X, sample_weight=weights)
    other = BicliqueSpectralClustering(2, **ALL, random_state=0).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(np.repeat(model.labels_, weights), other.labels_)
    assert BicliqueSpectralClustering(2, **ALL, random_state=0).fit(sparse.csr_array(X)).selection_.rows == 80


def test_chunks_get_kernels_alone(few, tmp_path):
    X = make_blobs(600, centers=3, random_state=0)[0]
    np.save(tmp_path / "rows.npy", X)
    model = BicliqueSpectralClustering(3, affinity="select", gram="nystroem", random_state=0)
    model.fit(tmp_path / "rows.npy")
    assert {one.candidate.affinity for one in model.selection_.judged if one.candidate is not None} == {"rbf"}
    assert len(model.labels_) == 600


def test_auto_is_untouched_and_others_have_no_search(moons):
    model = BicliqueSpectralClustering(2, random_state=0).fit(moons[0])
    assert not hasattr(model, "selection_")
    assert model.plan_.selected == ""
    with pytest.raises(ParameterError, match="order must be"):
        BicliqueSpectralEmbedding(order="select").fit(moons[0])
    with pytest.raises(ParameterError, match="affinity must be one of"):
        BicliqueSpectralEmbedding(affinity="select").fit(moons[0])


def test_a_failed_fit_leaves_no_selection(few, moons):
    model = BicliqueSpectralClustering(2, **ALL, random_state=0).fit(moons[0])
    before = model.selection_
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((20, 2), np.nan))
    assert model.selection_ is before
