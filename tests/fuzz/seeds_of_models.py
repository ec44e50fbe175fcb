"""Saved models: whole files, and files whose JSON or an array was changed by hand."""

import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

import biclique
from tests.fuzz.campaign import Reader
from tests.fuzz.mutate import members_of, zipped

ROWS = np.repeat([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]], 12, axis=0) + np.random.default_rng(0).normal(size=(36, 2))


@cache
def saved():
    """Small models of several kinds, as bytes of their files."""
    rbf = {"affinity": "rbf", "random_state": 0}
    models = [
        biclique.BicliqueSpectralClustering(3, random_state=0),
        make_pipeline(RobustScaler(), biclique.BicliqueSpectralClustering(3, gram="nystroem", rank=8, order=2, **rbf)),
        biclique.BicliqueSpectralClustering(3, **rbf),
        biclique.BicliqueSpectralClustering(3, affinity="nearest_neighbors", n_neighbors=5, random_state=0),
        biclique.BicliqueSpectralClustering(3, modelling="symmetric", order=3, **rbf),
        biclique.BicliqueKernelKMeans(3, random_state=0),
    ]
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            biclique.save(model.fit(ROWS), Path(folder, "m"), notes={"columns": ["x", "y"]})
            files.append(Path(folder, "m").read_bytes())
    return tuple(files)


def use(path):
    """Load a model and label rows with it, or be refused. Nobody can tell whether its numbers are good ones."""
    model = biclique.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("predict", "predict_proba", "transform"):
            try:
                getattr(model, name)(ROWS + 0.1)
            except Exception:  # parts that do not fit together: an error, and soon
                continue


def use_forged(path):
    """One member as an attacker would write it, in the file with the others."""
    at, _, member = path.name.partition("-")
    forged = path.with_name("forged.skops")
    forged.write_bytes(zipped(members_of(saved()[int(at)]) | {member: path.read_bytes()}))
    use(forged)


def _forged(ending):
    """One reader for each model, and its largest member with that ending."""
    readers = {}
    for at, content in enumerate(saved()):
        members = {name: inside for name, inside in members_of(content).items() if name.endswith(ending)}
        name = max(members, key=lambda name: len(members[name]))
        seeds = [members[name]]
        readers[f"model {at}, {ending} forged"] = Reader(lambda seeds=seeds: seeds, use_forged, f"{at}-{name}")
    return readers


MODELS = {
    "model": Reader(saved, use, "m.skops"),
    **_forged("schema.json"),
    **_forged(".npy"),
}
