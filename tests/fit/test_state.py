"""The state of a fitted model: arrays and plain values, from which the same model is made, bit by bit."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from biclique import BicliqueSpectralClustering, BicliqueSpectralEmbedding, Hypergraph, HypergraphSpectralClustering
from biclique.exceptions import BicliqueWarning, DataError, ParameterError
from biclique.fit.state import CLASSES, fitted_from, state_of
from biclique.kernels import KERNELS, RBF, Kernel
from biclique.spectral.assign import ASSIGNERS
from tests.fit.stored import same_everywhere, through_a_file
from tests.optional import needs

KERNEL_CASES = sorted(set(KERNELS) - {"poly", "additive_chi2"})  # the last is negative: it has no cut


@pytest.fixture(scope="module")
def groups():
    """120 rows in three groups, all positive; new rows beside them; and rows far from all."""
    random = np.random.default_rng(0)
    centres = np.array([[1.0, 1, 1, 5], [1, 5, 1, 1], [5, 1, 5, 1]])
    X = np.repeat(centres, 40, axis=0) + random.uniform(0, 0.8, (120, 4))
    return X, X[::7] + 0.01, X[:3] * 40


def fit(X, estimator=BicliqueSpectralClustering, **parameters):
    if estimator is not BicliqueSpectralEmbedding:
        parameters = {"n_clusters": 3, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        return estimator(random_state=0, **parameters).fit(X)


def check(model, *rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        same_everywhere(model._fitted, through_a_file(model._fitted), rows)


@pytest.mark.parametrize("affinity", KERNEL_CASES)
@pytest.mark.parametrize("gram", ["dense", "tiled", "nystroem"])
def test_kernels_and_ways_of_holding(groups, affinity, gram):
    rank = {"rank": 30} if gram == "nystroem" else {}
    check(fit(groups[0], affinity=affinity, gram=gram, order=4, **rank), *groups)


@pytest.mark.parametrize("assign_labels", list(ASSIGNERS))
@pytest.mark.parametrize(
    "way", ["default", "dense", "nystroem", "features", "graph", "given", "sparse rows", "symmetric"]
)
def test_ways_and_assigners(groups, way, assign_labels):
    X, new, far = groups
    parameters = {"assign_labels": assign_labels}
    if way == "graph":
        parameters["affinity"] = "nearest_neighbors"
    elif way == "default":
        parameters["rank"] = 60
    elif way == "given":
        X, new, far = (RBF(0.5).block(rows, X) for rows in groups)
        parameters["affinity"] = "precomputed"
    elif way == "sparse rows":
        X, new, far = (sparse.csr_matrix(np.where(rows > 1.3, rows, 0)) for rows in groups)
        parameters["affinity"] = "cosine"
    elif way == "symmetric":
        parameters |= {"affinity": "rbf", "modelling": "symmetric", "order": 3}
    else:
        parameters |= {"affinity": "rbf", "gram": way} | ({"rank": 40} if way != "dense" else {})
    if way == "features":
        far = new  # far away, a degree of random features is of any sign
    check(fit(X, **parameters), X, new, far)


@pytest.mark.parametrize(
    "parameters",
    [
        {"gram": "features", "affinity": "polynomial", "degree": 2},
        {"gram": "features", "affinity": "polynomial", "degree": 5, "rank": 16},
        {"gram": "features", "affinity": "laplacian", "rank": 32},
        {"affinity": "rbf", "gram": "nystroem", "modelling": "symmetric", "rank": 20},
        {
            "affinity": "rbf",
            "gram": "nystroem",
            "assign_labels": "kernel_kmeans",
            "rank": 20,
            "precision": "float64",
        },
        {"affinity": RBF(0.3)},
        {"affinity": "nearest_neighbors", "n_neighbors": 4},
        {"random_state": np.random.RandomState(5), "n_clusters": np.int64(3), "n_neighbors": np.int64(5)},
        {"affinity": "rbf", "gamma": np.float32(0.5)},
        {"affinity": "rbf", "order": np.inf, "kernel_params": {"of": [1, "two"]}},
        {"order": np.inf, "rank": "all", "kernel_params": {"metric": "cosine"}},
        {"kernel_params": {"metric": "gower"}},
    ],
    ids=" ".join,
)
def test_other_settings(groups, parameters):
    model = BicliqueSpectralClustering(**{"n_clusters": 3, "random_state": 0, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        model.fit(groups[0])
    check(model, *groups)


def test_an_embedding_has_no_labels(groups):
    of_rbf = {"affinity": "rbf"}
    for parameters in ({}, of_rbf, of_rbf | {"gram": "nystroem", "rank": 20}, {"affinity": "nearest_neighbors"}):
        check(fit(groups[0], BicliqueSpectralEmbedding, n_components=2, **parameters), *groups)


def test_a_given_graph_and_rows_of_weight_zero(groups):
    X, new, _ = groups
    near = kneighbors_graph(X, 8, mode="distance", include_self=True)
    rows = sparse.csr_matrix(np.linalg.norm(new[:, None] - X, axis=2))
    check(fit(near, affinity="precomputed_nearest_neighbors", n_neighbors=8), rows)
    K = RBF(0.5).block(X, X)
    model = BicliqueSpectralClustering(3, affinity="precomputed", random_state=0)
    check(model.fit(K, sample_weight=np.arange(120) % 5), K)
    check(fit(sparse.csr_array(np.where(K > 0.1, K, 0)), affinity="precomputed"), sparse.csr_array(K))


@pytest.mark.parametrize("assign_labels", list(ASSIGNERS))
@pytest.mark.parametrize("expansion", ["star", "clique"])
def test_hypergraphs(expansion, assign_labels):
    random = np.random.default_rng(3)
    edges = [[f"v{group}{i}" for i in random.choice(9, 3, replace=False)] for group in range(3) for _ in range(25)]
    hypergraph = Hypergraph.from_edges([*edges, ["v00", "v10"], ["v10", "v20"]])
    model = fit(hypergraph, HypergraphSpectralClustering, expansion=expansion, assign_labels=assign_labels, order=3)
    check(model, hypergraph.incidence, np.zeros((2, hypergraph.n_edges)))


@needs("torch")
@pytest.mark.parametrize(
    "parameters", [{}, {"affinity": "rbf"}, {"affinity": "rbf", "gram": "nystroem", "rank": 20}], ids=str
)
def test_of_a_device_it_is_the_state_of_the_host(groups, parameters):
    import pickle

    import torch

    model = fit(groups[0], device=torch.device("cpu"), **parameters)
    on_host = pickle.loads(pickle.dumps(model._fitted))
    same_everywhere(on_host, through_a_file(model._fitted), groups)


class Own(Kernel):
    def block(self, X, Y):
        return RBF(0.5).block(X, Y)


def likeness(x, y):
    return float(np.exp(-np.sum((x - y) ** 2)))


@pytest.mark.parametrize(("affinity", "named"), [(Own(), "Own"), (likeness, "likeness")], ids=["class", "function"])
def test_code_of_a_user_is_refused_with_the_way_out(groups, affinity, named):
    with pytest.raises(ParameterError, match=f"affinity={named} is code of your own.*KERNELS.*'precomputed'"):
        state_of(fit(groups[0], affinity=affinity)._fitted)


def test_a_kernel_in_the_table_is_stored_while_it_is_there(groups, monkeypatch):
    monkeypatch.setitem(KERNELS, "own", Own)
    monkeypatch.setattr(Own, "from_parameters", classmethod(lambda cls, **_: cls()), raising=False)
    model = fit(groups[0], affinity="own")
    check(model, *groups)
    state = state_of(model._fitted)
    monkeypatch.delitem(KERNELS, "own")
    with pytest.raises(DataError, match=r"names the class 'Own', which is not one of biclique's.*KERNELS"):
        fitted_from(state)


def test_a_rule_of_a_user_is_refused(groups):
    fitted = fit(groups[0], affinity="rbf")._fitted
    fitted.rule = type("Odd", (), {})()
    with pytest.raises(ParameterError, match=r"rule is a Odd, which the state of a model cannot hold.*pickle"):
        state_of(fitted)
    fitted.rule, fitted.rows = None, np.array([object()])
    with pytest.raises(ParameterError, match="rows is a ndarray"):
        state_of(fitted)


def test_a_state_makes_known_classes_alone(groups):
    state = state_of(fit(groups[0], affinity="rbf")._fitted)
    for name in ("Popen", "os.system", "object", None, 3, ["Plan"]):
        with pytest.raises(DataError, match=r"names the class .* not one of biclique's"):
            fitted_from({**state, "rule": {"class": name, "centres": np.ones((3, 3))}})
    for wrong in ({"class": "Plan"}, {"class": "tuple", "items": []}, {"class": "dtype", "name": "f8"}):
        with pytest.raises(DataError, match="has one of these classes: ExactFitted, FactoredFitted"):
            fitted_from(wrong)
    assert not any(kind.__module__.startswith(("builtins", "os", "subprocess")) for kind in CLASSES)


def test_indices_of_a_sparse_matrix_are_checked(groups):
    X = sparse.csr_array(np.where(groups[0] > 1.3, groups[0], 0))
    state = state_of(fit(X, affinity="cosine")._fitted)
    rows = state["trained"]["rows"]
    bad = {**rows, "indices": np.full_like(rows["indices"], 10**6)}
    with pytest.raises(ValueError, match=r"indices|index values"):
        fitted_from({**state, "trained": {**state["trained"], "rows": bad}})
