"""A model from a file predicts, transforms and is sure with the same bits as the one that was saved."""

import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import biclique
from biclique import (
    BicliqueKernelKMeans,
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    ConsensusClustering,
    Hypergraph,
    HypergraphSpectralClustering,
    InhomogeneousSubspaceClustering,
)
from biclique.cli import main
from biclique.exceptions import BicliqueWarning, DataError, ParameterError
from biclique.kernels import KERNELS, RBF, Kernel
from biclique.models.saving import load_with_notes
from biclique.spectral.assign import ASSIGNERS
from biclique.tables.preparer import TablePreparer
from tests.calls import refuses
from tests.optional import needs

KERNEL_CASES = sorted(set(KERNELS) - {"poly", "additive_chi2"})  # the last is negative: it has no cut


@pytest.fixture(scope="module")
def groups():
    """90 positive rows in three groups, and new rows beside them."""
    random = np.random.default_rng(0)
    centres = np.array([[1.0, 1, 1, 5], [1, 5, 1, 1], [5, 1, 5, 1]])
    X = np.repeat(centres, 30, axis=0) + random.uniform(0, 0.8, (90, 4))
    return X, X[::7] + 0.01


def fit(X, estimator=BicliqueSpectralClustering, **parameters):
    if estimator is not BicliqueSpectralEmbedding:
        parameters = {"n_clusters": 3, **parameters}
    with warnings.catch_warnings(action="ignore", category=BicliqueWarning):
        return estimator(**{"random_state": 0, **parameters}).fit(X)


def check(model, folder, *rows, **saving):
    """The model of the file; whatever it answers has the bits of the model that was saved."""
    biclique.save(model, folder / "model.skops", **saving)
    again = biclique.load(folder / "model.skops")
    assert type(again) is type(model)
    answered = 0
    with warnings.catch_warnings(action="ignore", category=BicliqueWarning):
        for X in rows:
            for name in ("predict", "transform", "predict_proba"):
                if not hasattr(model, name) or (name == "predict_proba" and sparse.issparse(X)):
                    continue
                ours, theirs = np.asarray(getattr(model, name)(X)), np.asarray(getattr(again, name)(X))
                assert ours.dtype == theirs.dtype
                assert np.array_equal(ours, theirs), name
                answered += 1
    assert answered >= len(rows)
    return again


WAYS = ({"gram": "dense"}, {"gram": "tiled"}, {"gram": "nystroem", "rank": 20})


@pytest.mark.parametrize(
    "parameters",
    [
        *({"affinity": kernel, "order": 4, **WAYS[j % 3]} for j, kernel in enumerate(KERNEL_CASES)),
        *({"affinity": "rbf", "assign_labels": assign, **WAYS[j % 3]} for j, assign in enumerate(ASSIGNERS)),
        *({"rank": 60, "assign_labels": assign} for assign in ASSIGNERS),
        {"affinity": "nearest_neighbors"},
        {"affinity": "rbf", "gram": "features", "rank": 40},
        {"affinity": "rbf", "modelling": "symmetric", "order": 3},
        {"affinity": "rbf", "gram": "nystroem", "modelling": "symmetric", "rank": 20},
        {"affinity": "polynomial", "gram": "features", "degree": 5, "rank": 16},
        {"affinity": "polynomial", "gram": "features", "degree": 2},
        {"affinity": "rbf", "order": np.inf, "kernel_params": {"of": [1, "two"]}},
        {"affinity": "rbf", "gamma": np.float32(0.5)},
        pytest.param(
            {"affinity": RBF(0.3), "random_state": np.random.RandomState(5), "n_clusters": np.int64(3)},
            id="objects",  # their text has an address
        ),
        {"kernel_params": {"metric": "cosine"}, "rank": "all", "order": np.inf},
        {"kernel_params": {"metric": "gower"}},
        {"n_clusters": "select"},
    ],
    ids=str,
)
def test_kernels_and_ways_of_storing(groups, tmp_path, parameters):
    model = fit(groups[0], **parameters)
    again = check(model, tmp_path, *groups, groups[0][:3] * 40)
    assert again.get_params().keys() == model.get_params().keys()
    assert np.array_equal(again.eigenvalues_, model.eigenvalues_)
    if hasattr(model, "k_selection_"):
        assert str(again.k_selection_) == str(model.k_selection_)


def test_given_matrices_and_sparse_rows(groups, tmp_path):
    X, new = groups
    K, crossed = RBF(0.5).block(X, X), RBF(0.5).block(new, X)
    check(fit(K, affinity="precomputed"), tmp_path, K, crossed)
    weighted = BicliqueSpectralClustering(3, affinity="precomputed", random_state=0)
    check(weighted.fit(K, sample_weight=np.arange(90) % 5), tmp_path, K)
    given = sparse.csr_array(np.where(K > 0.1, K, 0))
    check(fit(given, affinity="precomputed"), tmp_path, given, sparse.csr_array(crossed))
    near = kneighbors_graph(X, 8, mode="distance", include_self=True)
    distances = sparse.csr_matrix(np.linalg.norm(new[:, None] - X, axis=2))
    check(fit(near, affinity="precomputed_nearest_neighbors", n_neighbors=8), tmp_path, distances)
    rows = sparse.csr_matrix(np.where(X > 1.3, X, 0))
    check(fit(rows, affinity="cosine"), tmp_path, rows)
    check(fit(rows), tmp_path, rows)


@needs("finufft")
def test_fourier(groups, tmp_path):
    X, new = (rows[:, :2] for rows in groups)
    check(fit(X, affinity="rbf", gram="fourier", order=4), tmp_path, X, new)


def test_other_estimators(groups, tmp_path):
    X, new = groups
    for parameters in ({}, {"drop_first": True}, {"affinity": "rbf", "gram": "nystroem", "rank": 20}):
        check(fit(X, BicliqueSpectralEmbedding, n_components=2, **parameters), tmp_path, X, new)
    for parameters in ({}, {"weights": np.arange(90.0) + 1, "init": "k-means++"}, {"weights": "paper"}):
        check(fit(X, BicliqueKernelKMeans, **parameters), tmp_path, X, new)
    again = check(fit(X, InhomogeneousSubspaceClustering, subspace_dim=1, n_draws=30), tmp_path, X, new)
    biclique.save(again.set_params(n_draws=10**9), tmp_path / "many.skops")
    assert biclique.load(tmp_path / "many.skops").n_draws == 10**9
    assert again.subspaces_[0].basis.shape == (1, 4)
    parts = [("cut", BicliqueSpectralClustering(3, random_state=0)), ("means", KMeans(4, random_state=0))]
    check(fit(X, ConsensusClustering, estimators=parts), tmp_path, X, new)
    check(fit(X, ConsensusClustering), tmp_path, X, new)


@pytest.mark.parametrize(("expansion", "assign_labels"), [("star", "kmeans"), ("clique", "cluster_qr")])
def test_hypergraphs(tmp_path, expansion, assign_labels):
    edges = [["a", "b", "c"], ["b", "c"], ["a", 7], ["x", "y", "z"], ["y", "z"], ["x", "c"]]
    hypergraph = Hypergraph.from_edges(edges)
    chosen = {"n_clusters": 2, "expansion": expansion, "assign_labels": assign_labels, "order": 3}
    model = fit(hypergraph, HypergraphSpectralClustering, **chosen)
    again = check(model, tmp_path, hypergraph.incidence, include=["labels_"])
    assert again.clusters() == model.clusters()
    assert again.vertex_names_.tolist() == ["a", "b", "c", 7, "x", "y", "z"]


def test_pipelines(groups, tmp_path):
    X, new = groups
    steps = [
        TablePreparer(),
        StandardScaler(),
        MinMaxScaler(),
        MaxAbsScaler(),
        RobustScaler(),
        QuantileTransformer(n_quantiles=20),
        PowerTransformer(),
        Normalizer(),
    ]
    model = make_pipeline(*steps, BicliqueSpectralClustering(3, random_state=0)).fit(X)
    again = check(model, tmp_path, X, new)
    assert np.array_equal(again[:-1].transform(new), model[:-1].transform(new))
    check(model[0], tmp_path, X)


@needs("pandas")
def test_names_of_columns_and_the_kind_of_output(groups, tmp_path):
    import pandas

    X = pandas.DataFrame(groups[0], columns=["a", "b", "ä ", "d"])
    model = Pipeline([("scale", StandardScaler()), ("none", "passthrough"), ("cut", BicliqueSpectralEmbedding(2))])
    model.set_output(transform="pandas").fit(X)
    again = check(model, tmp_path, X)
    assert again.feature_names_in_.tolist() == ["a", "b", "ä ", "d"]
    assert isinstance(again.transform(X), pandas.DataFrame)
    refuses(ValueError, "feature names", again.transform, X[["b", "a", "ä ", "d"]])


@needs("torch")
@pytest.mark.parametrize(
    "parameters", [{}, {"affinity": "rbf"}, {"affinity": "rbf", "gram": "nystroem", "rank": 20}], ids=str
)
def test_of_a_device_the_host_s_copy_is_saved(groups, tmp_path, parameters):
    import torch

    model = fit(groups[0], device=torch.device("cpu"), **parameters)
    on_host = pickle.loads(pickle.dumps(model))
    biclique.save(model, tmp_path / "m.skops")
    again = biclique.load(tmp_path / "m.skops")
    assert again.device == "cpu"
    for X in groups:
        for name in ("predict", "transform", "predict_proba"):
            assert np.array_equal(getattr(again, name)(X), getattr(on_host, name)(X))


def test_from_another_process_and_folder(groups, tmp_path):
    model = make_pipeline(StandardScaler(), BicliqueSpectralClustering(3, random_state=0)).fit(groups[0])
    biclique.save(model, tmp_path / "m.skops")
    np.save(tmp_path / "new.npy", groups[1])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = (
        "import numpy as np, biclique; np.save('found', biclique.load('../m.skops').transform(np.load('../new.npy')))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], cwd=elsewhere, check=True, env=environment)
    np.testing.assert_array_equal(np.load(elsewhere / "found.npy"), model.transform(groups[1]))


def test_labels_and_embedding_are_left_out_unless_asked_for(groups, tmp_path):
    model = fit(groups[0])
    again = check(model, tmp_path, groups[1])
    joblib.dump(again, tmp_path / "m.joblib")  # a loaded model is pickled too
    assert np.array_equal(joblib.load(tmp_path / "m.joblib").predict_proba(groups[1]), model.predict_proba(groups[1]))
    for name in ("labels_", "embedding_"):
        assert not hasattr(again, name)
        refuses(AttributeError, rf"{name} was left out .* include=\['{name}'\]", getattr, again, name)
    with pytest.raises(AttributeError, match="object has no attribute 'nothing_'"):
        _ = again.nothing_
    assert [len(rows) for rows in again.representatives(groups[0])] == [5, 5, 5]
    assert len(again.profile(groups[0])) == len(model.profile(groups[0]))
    notes = {"columns": ["a", "b"], "n": 3, "inside": {"x": [None, True, 0.5, np.inf]}}
    whole = check(model, tmp_path, groups[1], include=["labels_", "embedding_"], notes=notes)
    assert load_with_notes(tmp_path / "model.skops")[1] == notes
    assert np.array_equal(whole.labels_, model.labels_)
    assert np.array_equal(whole.embedding_, model.embedding_)
    second = check(again, tmp_path, groups[1])
    with pytest.raises(AttributeError, match="was left out"):
        _ = second.labels_
    again.fit(groups[0])
    assert np.array_equal(again.labels_, model.labels_)
    assert not hasattr(again, "_left_out")
    for wrong in (["gamma_"], "labels_"):
        with pytest.raises(ParameterError, match="include must be a list of some of 'labels_', 'embedding_'"):
            biclique.save(model, tmp_path / "no", include=wrong)
    assert not (tmp_path / "no").exists()


def test_models_and_pages_name_no_folder(groups, tmp_path):
    table, saved, page = (tmp_path / name for name in ("table.csv", "m.skops", "page.html"))
    np.savetxt(table, groups[0], delimiter=",", header="a,b,c,d", comments="")
    words = ["cluster", table, "-k", "3", "--save", saved, f"--report={page}", "-o", tmp_path / "l.csv", "--quiet"]
    assert main(list(map(str, words))) == 0
    with zipfile.ZipFile(saved) as archive:
        contents = [archive.read(name) for name in archive.namelist()]
    assert not any(text in content for text in (b"table.csv", tmp_path.name.encode()) for content in contents)
    assert tmp_path.name not in page.read_text(encoding="utf-8")
    assert "biclique cluster table.csv -k 3 --save m.skops --report=page.html" in page.read_text(encoding="utf-8")


# Refused


def own(x, y):
    return float(np.exp(-np.sum((x - y) ** 2)))


class Own(Kernel):
    def block(self, X, Y):
        return RBF(0.5).block(X, Y)

    @classmethod
    def from_parameters(cls, **_):
        return cls()


class Mine(BicliqueSpectralClustering):
    """A subclass of a user."""


def test_code_of_a_user_is_refused_by_its_name(groups, tmp_path):
    X = groups[0]
    ours = BicliqueSpectralClustering(3, random_state=0)
    raw = make_pipeline(FunctionTransformer(own), BicliqueSpectralClustering(3, affinity="precomputed"))
    raw[-1].fit(np.eye(4))
    cases = [
        (ours, "this BicliqueSpectralClustering is not fitted: call fit first"),
        (make_pipeline(Normalizer(), ours), "this Pipeline is not fitted"),
        ("model", "model must be an estimator or a Pipeline, got a str"),
        (fit(X, affinity=own), r"test_saving\.own cannot be saved: .*KERNELS.*'precomputed'"),
        (fit(X, affinity=Own()), r"test_saving\.Own cannot be saved"),
        (Mine(3).fit(X), r"test_saving\.Mine cannot be saved"),
        (raw, r"test_saving\.own cannot be saved"),
    ]
    for model, message in cases:
        refuses(ParameterError, message, biclique.save, model, tmp_path / "no.skops")
    assert not list(tmp_path.glob("*.skops*"))
    refuses(DataError, "there is no folder", biclique.save, fit(X), tmp_path / "no folder" / "m.skops")


def test_a_kernel_in_the_table_is_saved_and_read_while_it_is_there(groups, tmp_path, monkeypatch):
    monkeypatch.setitem(KERNELS, "own", Own)
    check(fit(groups[0], affinity="own"), tmp_path, *groups)
    monkeypatch.delitem(KERNELS, "own")
    refuses(DataError, r"test_saving\.Own", biclique.load, tmp_path / "model.skops")


def test_a_failed_save_leaves_the_old_file(groups, tmp_path, monkeypatch):
    path = tmp_path / "m.skops"
    biclique.save(fit(groups[0]), path)
    before = path.read_bytes()
    monkeypatch.setattr(Path, "write_bytes", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        biclique.save(fit(groups[0], order=4), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.skops"]
