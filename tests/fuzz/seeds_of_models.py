"""Saved models: whole files, and files whose checksums are right though their JSON or an array was changed by hand."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

import biclique
from biclique.models.archive import _signed
from tests.fuzz.campaign import Reader
from tests.fuzz.mutate import Files

ROWS = np.repeat([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]], 12, axis=0) + np.random.default_rng(0).normal(size=(36, 2))


@cache
def saved() -> tuple[bytes, ...]:
    """Small models of several kinds, as bytes of their files."""
    models = [
        biclique.BicliqueSpectralClustering(3, random_state=0),
        make_pipeline(
            RobustScaler(),
            biclique.BicliqueSpectralClustering(
                3, affinity="rbf", gram="nystroem", rank=8, order=2, row_normalize=True, random_state=0
            ),
        ),
        biclique.BicliqueSpectralClustering(3, affinity="rbf", random_state=0),
        biclique.BicliqueSpectralClustering(3, affinity="nearest_neighbors", n_neighbors=5, random_state=0),
    ]
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            biclique.save(model.fit(ROWS), Path(folder, "m"), notes={"columns": ["x", "y"]})
            files.append(Path(folder, "m").read_bytes())
    return tuple(files)


@cache
def answers() -> frozenset[bytes]:
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        for content in saved():
            Path(folder, "m").write_bytes(content)
            found.add(_answer(Path(folder, "m")))
    return frozenset(found)


def _answer(path: Path) -> bytes:
    model = biclique.load(path)
    return model.transform(ROWS).tobytes() + model.predict(ROWS).tobytes()


def read_whole(path: Path) -> None:
    """A damaged file is refused, or the damage is where nothing is read: then the answer is that of a whole one."""
    if _answer(path) not in answers():
        raise AssertionError("a damaged file was read, and answers differently")


def archive(changes: Files) -> bytes:
    """The second model with other members, all declared with the checksums that they have now."""
    with zipfile.ZipFile(io.BytesIO(saved()[1])) as whole:
        members = {name: whole.read(name) for name in whole.namelist()} | changes
    if "model.json" not in changes:
        text = json.loads(members["model.json"])
        for number, declared in enumerate(text["arrays"]):
            declared["sha256"] = hashlib.sha256(members[f"arrays/{number}.npy"]).hexdigest()
        members["model.json"] = json.dumps(text).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as out:
        for name, content in members.items():
            out.writestr(name, content)
        out.comment = _signed(members["model.json"])
    return made.getvalue()


def read_signed(path: Path, member: str) -> None:
    """One member as an attacker would write it. Whether the model is a good one, nobody can tell; it is data alone."""
    forged = path.with_name("forged.biclique")
    forged.write_bytes(archive({member: path.read_bytes()}))
    biclique.load(forged)


def _members(member: str) -> list[Files]:
    with zipfile.ZipFile(io.BytesIO(saved()[1])) as whole:
        return [{member: whole.read(member)}]


READERS: dict[str, Reader] = {
    "model": Reader(lambda: [{"m.biclique": content} for content in saved()], read_whole, "m.biclique"),
    "model, its text forged": Reader(
        lambda: _members("model.json"), lambda path: read_signed(path, "model.json"), "model.json"
    ),
    "model, an array forged": Reader(
        lambda: _members("arrays/0.npy"), lambda path: read_signed(path, "arrays/0.npy"), "0.npy"
    ),
}
