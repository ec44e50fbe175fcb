"""A model from a file predicts, transforms and is sure with the same bits as the one that was saved."""

import json
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
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

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
from biclique.exceptions import BicliqueWarning, DataError, MemoryLimitError, ParameterError
from biclique.io import TablePreparer
from biclique.kernels import KERNELS, RBF
from biclique.models import load_with_notes
from biclique.models.contents import SCALERS
from tests.optional import needs

KERNEL_CASES = sorted(set(KERNELS) - {"poly", "additive_chi2"})


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        return estimator(**{"random_state": 0, **parameters}).fit(X)


def check(model, folder, *rows, **saving):
    """The model of the file; whatever it answers has the bits of the model that was saved."""
    saved = biclique.save(model, folder / "model.biclique", **saving)
    assert saved.bytes == (folder / "model.biclique").stat().st_size
    again = biclique.load(folder / "model.biclique")
    assert type(again) is type(model)
    answered = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
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


@pytest.mark.parametrize("affinity", KERNEL_CASES)
@pytest.mark.parametrize("gram", ["dense", "tiled", "nystroem"])
def test_kernels_and_ways_of_storing(groups, tmp_path, affinity, gram):
    rank = {"rank": 20} if gram == "nystroem" else {}
    check(fit(groups[0], affinity=affinity, gram=gram, order=4, **rank), tmp_path, *groups)


@pytest.mark.parametrize(
    "parameters",
    [
        {"gram": "fourier", "affinity": "rbf", "order": 4},
        {"gram": "features", "affinity": "rbf", "rank": 40},
        {"gram": "features", "affinity": "polynomial", "degree": 5, "rank": 16},
        {"gram": "features", "affinity": "linear"},
        {"affinity": "nearest_neighbors"},
        {"rank": 20, "n_neighbors": 5},
        {"rank": "all"},
        {"kernel_params": {"metric": "cosine"}, "rank": 20},
        {"kernel_params": {"metric": "gower"}},
        {"modelling": "symmetric", "order": 3, "affinity": "rbf"},
        {"assign_labels": "kernel_kmeans"},
        {"assign_labels": "cluster_qr"},
        {"assign_labels": "discretize"},
        {"order": np.inf},
        {"affinity": "rbf", "kernel_params": {"of": [1, "two"]}},
        {"random_state": np.random.RandomState(5), "gamma": np.float32(0.5), "affinity": RBF(0.3)},
        {"n_clusters": "select", "k_max": 4},
    ],
    ids=" ".join,
)
def test_families_and_settings(groups, tmp_path, parameters):
    X, new = groups
    if parameters.get("gram") == "fourier":
        X, new = X[:, :2], new[:, :2]
    model = fit(X, **parameters)
    again = check(model, tmp_path, X, new)
    assert str(again.plan_) == str(model.plan_)
    assert again.get_params().keys() == model.get_params().keys()
    assert np.array_equal(again.eigenvalues_, model.eigenvalues_)
    if hasattr(model, "k_selection_"):
        assert str(again.k_selection_) == str(model.k_selection_)
        assert again.k_selection_.reason == model.k_selection_.reason


def test_given_matrices_and_sparse_rows(groups, tmp_path):
    X, new = groups
    K, crossed = RBF(0.5).block(X, X), RBF(0.5).block(new, X)
    check(fit(K, affinity="precomputed"), tmp_path, K, crossed)
    given = sparse.csr_array(np.where(K > 0.1, K, 0))
    check(fit(given, affinity="precomputed"), tmp_path, given, sparse.csr_array(crossed))
    rows = sparse.csr_matrix(np.where(X > 1.3, X, 0))
    check(fit(rows, affinity="cosine"), tmp_path, rows)
    check(fit(rows), tmp_path, rows)


def test_other_estimators(groups, tmp_path):
    X, new = groups
    for parameters in ({}, {"drop_first": True}, {"affinity": "rbf", "gram": "nystroem", "rank": 20}):
        check(fit(X, BicliqueSpectralEmbedding, n_components=2, **parameters), tmp_path, X, new)
    for parameters in ({}, {"weights": np.arange(90.0) + 1, "init": "k-means++"}, {"weights": "paper"}):
        check(fit(X, BicliqueKernelKMeans, **parameters), tmp_path, X, new)
    again = check(fit(X, InhomogeneousSubspaceClustering, subspace_dim=1, n_draws=30), tmp_path, X, new)
    assert again.subspaces_[0].basis.shape == (1, 4)
    parts = [("cut", BicliqueSpectralClustering(3, random_state=0)), ("means", KMeans(4, random_state=0))]
    check(fit(X, ConsensusClustering, estimators=parts), tmp_path, X, new)
    check(fit(X, ConsensusClustering), tmp_path, X, new)


def test_hypergraphs_keep_the_names_of_vertices(tmp_path):
    edges = [["a", "b", "c"], ["b", "c"], ["a", 7], ["x", "y", "z"], ["y", "z"], ["x", "c"]]
    hypergraph = Hypergraph.from_edges(edges)
    model = HypergraphSpectralClustering(2, random_state=0).fit(hypergraph)
    again = check(model, tmp_path, hypergraph.incidence, include=["labels_"])
    assert again.clusters() == model.clusters()
    assert again.vertex_names_.tolist() == ["a", "b", "c", 7, "x", "y", "z"]


@pytest.mark.parametrize("scaler", SCALERS)
def test_pipelines_with_every_scaler(groups, tmp_path, scaler):
    X, new = groups
    few = {"n_quantiles": 20} if scaler.__name__ == "QuantileTransformer" else {}
    model = make_pipeline(scaler(**few), BicliqueSpectralClustering(3, random_state=0)).fit(X)
    again = check(model, tmp_path, X, new)
    assert np.array_equal(again[:-1].transform(new), model[:-1].transform(new))
    check(scaler(**few).fit(X), tmp_path, X)


@needs("pandas")
def test_names_of_columns_and_the_kind_of_output(groups, tmp_path):
    import pandas

    X = pandas.DataFrame(groups[0], columns=["a", "b", "ä ", "d"])
    model = Pipeline([("scale", StandardScaler()), ("none", "passthrough"), ("cut", BicliqueSpectralEmbedding(2))])
    model.set_output(transform="pandas").fit(X)
    again = check(model, tmp_path, X)
    assert again.feature_names_in_.tolist() == ["a", "b", "ä ", "d"]
    assert isinstance(again.transform(X), pandas.DataFrame)
    with pytest.raises(ValueError, match="feature names"):
        again.transform(X[["b", "a", "ä ", "d"]])


@needs("torch")
@pytest.mark.parametrize(
    "parameters", [{}, {"affinity": "rbf"}, {"affinity": "rbf", "gram": "nystroem", "rank": 20}], ids=str
)
def test_of_a_device_the_host_s_copy_is_saved(groups, tmp_path, parameters):
    import torch

    model = fit(groups[0], device=torch.device("cpu"), **parameters)
    on_host = pickle.loads(pickle.dumps(model))
    biclique.save(model, tmp_path / "m.biclique")
    again = biclique.load(tmp_path / "m.biclique")
    assert again.device == "cpu"
    for X in groups:
        for name in ("predict", "transform", "predict_proba"):
            assert np.array_equal(getattr(again, name)(X), getattr(on_host, name)(X))


def test_from_another_process_and_folder(groups, tmp_path):
    model = make_pipeline(StandardScaler(), BicliqueSpectralClustering(3, random_state=0)).fit(groups[0])
    biclique.save(model, tmp_path / "m.biclique")
    np.save(tmp_path / "new.npy", groups[1])
    (tmp_path / "elsewhere").mkdir()
    code = (
        "import numpy, biclique; m = biclique.load('../m.biclique'); X = numpy.load('../new.npy');"
        "numpy.savez('found', labels=m.predict(X), rows=m.transform(X), sure=m[-1].predict_proba(m[:-1].transform(X)))"
    )
    paths = os.pathsep.join([str(Path(biclique.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "elsewhere", check=True, env={**os.environ, "PYTHONPATH": paths}
    )
    with np.load(tmp_path / "elsewhere" / "found.npz") as found:
        assert np.array_equal(found["labels"], model.predict(groups[1]))
        assert np.array_equal(found["rows"], model.transform(groups[1]))
        assert np.array_equal(found["sure"], model[-1].predict_proba(model[:-1].transform(groups[1])))


def test_pickle_and_joblib_keep_working(groups, tmp_path):
    biclique.save(fit(groups[0]), tmp_path / "m.biclique")
    for model in (fit(groups[0]), biclique.load(tmp_path / "m.biclique")):
        joblib.dump(model, tmp_path / "m.joblib")
        for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
            assert np.array_equal(again.predict_proba(groups[1]), model.predict_proba(groups[1]))


# What is left out, and what a file says of itself


def test_labels_and_embedding_are_left_out_unless_asked_for(groups, tmp_path):
    model = fit(groups[0])
    again = check(model, tmp_path, groups[1])
    for name in ("labels_", "embedding_"):
        assert not hasattr(again, name)
        with pytest.raises(AttributeError, match=rf"{name} was left out .* include=\['{name}'\]"):
            getattr(again, name)
    with pytest.raises(AttributeError, match="object has no attribute 'nothing_'"):
        _ = again.nothing_
    assert [len(rows) for rows in again.representatives(groups[0])] == [5, 5, 5]
    assert len(again.profile(groups[0])) == len(model.profile(groups[0]))
    whole = check(model, tmp_path, groups[1], include=["labels_", "embedding_"])
    assert np.array_equal(whole.labels_, model.labels_)
    assert np.array_equal(whole.embedding_, model.embedding_)
    biclique.save(again, tmp_path / "second.biclique")  # saved again, it still says what is missing
    with pytest.raises(AttributeError, match="was left out"):
        _ = biclique.load(tmp_path / "second.biclique").labels_
    again.fit(groups[0])
    assert np.array_equal(again.labels_, model.labels_)
    assert not hasattr(again, "_left_out")
    for wrong in (["gamma_"], "labels_"):
        with pytest.raises(ParameterError, match="include must be a list of some of 'labels_', 'embedding_'"):
            biclique.save(model, tmp_path / "no", include=wrong)
    with pytest.raises(ParameterError, match="include has 'labels_', which this BicliqueSpectralEmbedding does not"):
        biclique.save(fit(groups[0], BicliqueSpectralEmbedding), tmp_path / "no", include=["labels_"])
    assert not (tmp_path / "no").exists()


def test_save_says_how_large_and_why(groups, tmp_path):
    exact = biclique.save(fit(groups[0], affinity="rbf"), tmp_path / "a")
    assert f"{tmp_path / 'a'}: " in str(exact)
    assert "all 90 distinct training rows, which exact predictions need" in str(exact)
    few = biclique.save(fit(groups[0], affinity="rbf", gram="nystroem", rank=20), tmp_path / "b")
    assert "20 landmarks instead of the rows" in str(few)
    assert "20 landmarks: rows, or means of rows" in str(biclique.save(fit(groups[0], rank=20), tmp_path / "c"))
    assert list(exact.parts.values()) == sorted(exact.parts.values(), reverse=True)
    assert sum(exact.parts.values()) < exact.bytes


def test_equal_models_are_equal_files_and_each_array_is_there_once(groups, tmp_path):
    for name in "ab":
        biclique.save(fit(groups[0], memory_limit="1GB"), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        whole = json.loads(archive.read("model.json"))
    digests = [one["sha256"] for one in whole["arrays"] if np.prod(one["shape"]) > 10]
    assert len(digests) - len(set(digests)) <= 2  # equal by chance, not by sharing


def test_notes(groups, tmp_path):
    notes = {"columns": ["a", "b"], "n": 3, "inside": {"x": [None, True, 0.5, np.inf]}}
    biclique.save(fit(groups[0]), tmp_path / "m", notes=notes)
    assert load_with_notes(tmp_path / "m")[1] == notes
    with pytest.raises(ParameterError, match=r"notes\['f'\] must be text, numbers.*got a function"):
        biclique.save(fit(groups[0]), tmp_path / "no", notes={"f": fit})


# Refused


def own(x, y):
    return float(np.exp(-np.sum((x - y) ** 2)))


def test_anything_else_is_refused_by_its_name(groups, tmp_path):
    X = groups[0]
    path = tmp_path / "no.biclique"

    def ours():
        return BicliqueSpectralClustering(3, random_state=0)

    cases = [
        (PCA(2).fit(X), "a PCA cannot be saved: a model file holds BicliqueSpectralClustering.*skops"),
        (make_pipeline(FunctionTransformer(), ours()).fit(X), "a FunctionTransformer cannot be saved"),
        (make_pipeline(Normalizer(), ours()), "this BicliqueSpectralClustering is not fitted"),
        (make_pipeline(ours(), memory=str(tmp_path)).fit(X), "a Pipeline with memory= cannot be saved"),
        (ours(), "is not fitted, so there is nothing to save: call fit first"),
        (fit(X, affinity=own), "affinity=own is code of your own"),
        ("model", "a str cannot be saved"),
        (type("Mine", (BicliqueSpectralClustering,), {})(3).fit(X), "a Mine cannot be saved"),
        (
            fit(X, ConsensusClustering, estimators=[("a", AgglomerativeClustering(3))]),
            r"estimators\[0\].*is a AgglomerativeClustering, which the state of a model cannot hold",
        ),
    ]
    for model, message in cases:
        with pytest.raises(ParameterError, match=message):
            biclique.save(model, path)
    assert not list(tmp_path.glob("*.biclique*"))
    with pytest.raises(DataError, match="there is no folder"):
        biclique.save(fit(X), tmp_path / "no folder" / "m.biclique")


def test_a_failed_save_leaves_the_old_file(groups, tmp_path, monkeypatch):
    path = tmp_path / "m.biclique"
    biclique.save(fit(groups[0]), path)
    before = path.read_bytes()
    monkeypatch.setattr("biclique.models.archive._signed", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        biclique.save(fit(groups[0], order=4), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.biclique"]


def test_a_file_larger_than_the_memory_limit_is_refused(groups, tmp_path):
    biclique.save(fit(groups[0]), tmp_path / "m")
    with pytest.raises(MemoryLimitError, match=r"needs .* limit 1e.*raise memory_limit"):
        biclique.load(tmp_path / "m", memory_limit=1000)


@needs("skops")
@pytest.mark.parametrize(
    "steps",
    [
        [BicliqueSpectralClustering(3, random_state=0)],
        [StandardScaler(), BicliqueSpectralClustering(3, affinity="rbf", gram="dense", random_state=0)],
        [StandardScaler(), BicliqueSpectralClustering(3, affinity="rbf", gram="nystroem", rank=20, random_state=0)],
        [BicliqueSpectralClustering(3, affinity="nearest_neighbors", random_state=0)],
        [TablePreparer(), BicliqueSpectralClustering(3, affinity="gower", random_state=0)],
        [BicliqueKernelKMeans(3, random_state=0)],
    ],
)
def test_skops_keeps_models(steps):
    from skops import io as skops_io

    random = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 1.0], [0.0, 9.0]], 20, axis=0) + random.normal(size=(60, 2))
    model = make_pipeline(*steps).fit(X)
    data = skops_io.dumps(model)
    classes = skops_io.get_untrusted_types(data=data)
    assert {name.split(".")[0] for name in classes} <= {"biclique", "numpy", "scipy"}
    again = skops_io.loads(data, trusted=classes)
    new = X + random.normal(size=X.shape)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
