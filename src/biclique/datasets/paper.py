"""Data sets: scikit-learn's by name, and those of the paper: iris, spine, ovarian, Hopkins155.

Each is looked for in ``data_home`` in the layout named in its docstring, converted or original, then fetched from its
public source. What was read, features and all labels, is checked against the published numbers by a checksum of its
contents. Nothing is unpickled, and archives are read member by member, never unpacked.
"""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.utils import Bunch

from biclique._typing import FloatArray, IntArray
from biclique.datasets.home import (
    check_content,
    check_size,
    content_digest,
    damage,
    fetched,
    find,
    read_file,
    read_mat,
    read_member,
    read_npy,
)
from biclique.datasets.home import data_home as _home
from biclique.datasets.hopkins_digests import SEQUENCES
from biclique.exceptions import DataError, ParameterError, printable

# Those that come with scikit-learn, by name


SHIPPED: dict[str, Callable[[], Any]] = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
    "linnerud": datasets.load_linnerud,
}


def load_shipped(name: str) -> Any:
    """A scikit-learn Bunch; ``target_names`` is None if the target is not a class."""
    bunch = SHIPPED[name]()
    if name in ("diabetes", "linnerud"):
        bunch.target_names = None
    return bunch


# Those of the paper


SPINE_FEATURES = (
    "pelvic_incidence",
    "pelvic_tilt",
    "lumbar_lordosis_angle",
    "sacral_slope",
    "pelvic_radius",
    "degree_spondylolisthesis",
)
SPINE_URL = "https://raw.githubusercontent.com/log0/vertebral/b0614f66f340e6a59c7d4b7c3be40847534b168b/data/"
OVARIAN_URL = (
    "https://raw.githubusercontent.com/AdrianAdame/NeuralNetworks_UABC/HEAD/Examples/Classification_Example/"
    "ovarian_dataset.dat"
)
HOPKINS_URL = "https://www.vision.jhu.edu/data/hopkins155/Hopkins155.zip"
DIGESTS: dict[str, Any] = {
    "spine": "85d99e7aaa5d35f2e84dfd15e3a9a89951b296463c0f545542ab10ae6489929f",
    "ovarian100": "688ad13a5f71be4bbfd275ab80af4378b0898ede8a115c47bf053f286b376f42",
    "ovarian4000": "68bd9e82e5cbd64ade923284901dca20c17ba55ae3040a544f04014e6fb7af35",
    "hopkins155": SEQUENCES,
}
"""Checksums of the contents, features then labels; of Hopkins155 for each sequence."""

LARGEST_MEMBER, LARGEST_TEXT, LARGEST_SEQUENCES = 16 * 2**20, 4 * 2**20, 256 * 2**20
"""Bytes of a member of an archive or an array, of a text, and of all sequences: several times the published data's."""

TRUTH = re.compile(r"(?:^|/)([A-Za-z0-9_]+)/\1_truth\.mat$")
LEFT_OUT = ("dancing",)
"""Five motions; not one of the 155."""


def load_iris() -> Bunch:
    """Iris, 150 × 4, three classes: scikit-learn's copy, in which two rows differ from the UCI file."""
    return datasets.load_iris()


def load_spine(data_home: str | os.PathLike[str] | None = None, *, classes: int = 2, verbose: bool = True) -> Bunch:
    """Vertebral column (UCI), 310 × 6; ``classes=2`` normal and abnormal, ``classes=3`` as in the source.

    In ``data_home``: ``spine.csv`` (six named columns, ``label_3c``, ``label_2c``), or UCI's ``column_2C.dat`` and
    ``column_3C.dat``, which are also what is fetched.
    """
    if classes not in (2, 3):
        raise ParameterError(f"classes must be 2 or 3, got {classes!r}.")
    home = _home(data_home)
    names = () if find(home, ["spine.csv"]) else ("column_2C.dat", "column_3C.dat")
    way_out = f"put spine.csv, or UCI's column_2C.dat and column_3C.dat, into {home}"
    with fetched("spine", home, {name: SPINE_URL + name for name in names}, way_out, verbose=verbose):
        X, two, three, source = _read_spine(home)
        codes = [np.unique(labels, return_inverse=True)[1] for labels in (two, three)]
        check_content("spine", content_digest(X, *codes), DIGESTS["spine"], source)
    classes_found, target = np.unique(two if classes == 2 else three, return_inverse=True)
    return Bunch(
        data=X,
        target=target,
        target_names=classes_found,
        feature_names=list(SPINE_FEATURES),
        n_clusters=classes,
        name="spine",
    )


def _read_spine(home: Path) -> tuple[FloatArray, list[str], list[str], Path]:
    table = home / "spine.csv"
    if table.exists():
        rows = _rows(table, ",")
        header, rows = rows[0], rows[1:]
        if header != [*SPINE_FEATURES, "label_3c", "label_2c"]:
            raise DataError(f"{table}: its columns must be {', '.join(SPINE_FEATURES)}, label_3c, label_2c.")
        return _numbers(table, [row[:6] for row in rows]), [r[7] for r in rows], [r[6] for r in rows], table
    two, three = home / "column_2C.dat", home / "column_3C.dat"
    first, second = _rows(two, " "), _rows(three, " ")
    if len(first[0]) != 7 or len(second[0]) != 7:
        raise DataError(f"{two}: every line must have six numbers and a class, got {len(first[0])} fields.")
    X = _numbers(two, [row[:6] for row in first])
    if not np.array_equal(X, _numbers(three, [row[:6] for row in second])):
        raise DataError(f"{three}: its features differ from those of column_2C.dat.")
    return X, [row[6] for row in first], [row[6] for row in second], two


def load_ovarian(
    data_home: str | os.PathLike[str] | None = None, *, features: int = 100, verbose: bool = True
) -> Bunch:
    """Ovarian cancer (FDA-NCI mass spectra), 216 × 100 or 216 × 4000; class 1 is cancer.

    In ``data_home``: ``ovarian100.npz`` and ``ovarian4000.npz`` with X and y. The 100 features are also read from
    MATLAB's ``ovarian_dataset.dat`` (100 inputs and two columns of targets), which is what is fetched. The 4000 are in
    MATLAB's ``ovariancancer.mat``, a table that only MATLAB reads, and so are never fetched.
    """
    if features not in (100, 4000):
        raise ParameterError(f"features must be 100 or 4000, got {features!r}.")
    home = _home(data_home)
    name = f"ovarian{features}"
    path = home / f"{name}.npz"
    if not path.exists() and features == 4000:
        raise DataError(
            f"the ovarian data with 4000 features are not in {home}: in MATLAB, 'load ovariancancer', and put its "
            f"observations as X (216 × 4000) and its groups as y (1 for cancer) into {path} with numpy.savez "
            f"(or set BICLIQUE_DATA, or pass data_home)."
        )
    if path.exists():
        X, y = _arrays(path, ("X", "y"))
        return _ovarian(name, X, y, path)
    path = home / "ovarian_dataset.dat"
    way_out = f"put {name}.npz or MATLAB's {path.name} into {home}"
    with fetched(name, home, {path.name: OVARIAN_URL}, way_out, verbose=verbose):
        table = _numbers(path, _rows(path, None))
        if table.shape[1] != 102:
            raise DataError(f"{path}: it must have 102 columns, 100 features and two of targets, got {table.shape[1]}.")
        return _ovarian(name, table[:, :100], (table[:, 100] > 0.5).astype(int), path)


def _ovarian(name: str, X: Any, y: Any, source: Path) -> Bunch:
    if X.ndim != 2 or y.shape != X.shape[:1] or not np.isin(y, (0, 1)).all():
        raise DataError(f"{source}: X must be a table and y 0 or 1 for each row of it, got {X.shape} and {y.shape}.")
    check_content(name, content_digest(X, y), DIGESTS[name], source)
    return Bunch(
        data=np.asarray(X, dtype=float),
        target=np.asarray(y, dtype=int),
        target_names=np.array(["normal", "cancer"]),
        n_clusters=2,
        name="ovarian",
    )


class Hopkins155:
    """The sequences of Hopkins155, one by one: an iterable of Bunches, with ``len`` and names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members = _hopkins_members(path)
        if not self._members:
            raise DataError(f"{path}: there is no sequence in it (<name>/<name>_truth.mat, or <name>/X and <name>/y).")
        self.names = sorted(self._members)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Bunch]:
        return (self.sequence(name) for name in self.names)

    def sequence(self, name: str) -> Bunch:
        """One sequence: ``data`` (points × 2 frames, x₁ y₁ x₂ y₂ …), ``target`` from 0, ``n_clusters`` motions."""
        if name not in self._members:
            raise ParameterError(f"there is no sequence {name!r}; there are {len(self)}, such as {self.names[0]!r}.")
        X, y = self._read(name)
        names, target = np.unique(y, return_inverse=True)
        return Bunch(data=X, target=target, n_clusters=len(names), name=name)

    def _read(self, name: str) -> tuple[FloatArray, IntArray]:
        member = self._members[name]
        source = f"{self.path}: {member}"
        if self.path.suffix == ".npz":
            X, y = _arrays(self.path, (f"{name}/X", f"{name}/y"))
            if X.ndim != 2 or y.shape != X.shape[:1] or y.dtype.kind == "f":
                raise DataError(
                    f"{printable(source)}: X must have shape (points, 2 frames) and y one whole number for each point, "
                    f"got {X.shape} and {y.shape} {y.dtype}."
                )
            return X.astype(float), y.astype(int)
        with damage(source, "cannot be read"):
            if self.path.is_dir():
                content = read_file(self.path / member, LARGEST_MEMBER)
            else:
                with zipfile.ZipFile(self.path) as archive:
                    content = read_member(archive, member, source, LARGEST_MEMBER)
        return _tracks(content, source)

    def digest(self) -> str:
        """The checksum of all sequences."""
        return content_digest(*(part for name in self.names for part in self._read(name)))

    def check(self, expected: dict[str, str]) -> None:
        """Refuse other sequences than the published ones: by their names, then each by its checksum as it is read."""
        missing, unknown = expected.keys() - set(self.names), set(self.names) - expected.keys()
        if missing or unknown:
            raise DataError(
                f"{self.path}: not the published Hopkins155 data: {len(missing)} of {len(expected)} sequences are "
                f"missing, {len(unknown)} are unknown: remove it and fetch it again."
            )
        for name in self.names:
            digest = content_digest(*self._read(name))[: len(expected[name])]
            check_content("Hopkins155", digest, expected[name], f"{self.path}: {name}")


def load_hopkins155(data_home: str | os.PathLike[str] | None = None, *, verbose: bool = True) -> Hopkins155:
    """Hopkins155 (Tron and Vidal): 155 sequences of point tracks, 120 with two motions and 35 with three.

    In ``data_home``: ``hopkins155.npz`` with ``<name>/X`` and ``<name>/y``, or the benchmark's own ``Hopkins155.zip``
    (which is what is fetched) or its unpacked folder ``Hopkins155``, with ``<name>/<name>_truth.mat``.

    Examples
    --------
    >>> for sequence in load_hopkins155():  # doctest: +SKIP
    ...     print(sequence.name, sequence.data.shape, sequence.n_clusters)
    """
    home = _home(data_home)
    names = ("hopkins155.npz", "Hopkins155", "Hopkins155.zip")
    files = {} if find(home, names) else {"Hopkins155.zip": HOPKINS_URL}
    way_out = f"put hopkins155.npz, the benchmark's Hopkins155.zip or its unpacked folder Hopkins155 into {home}"
    with fetched("Hopkins155", home, files, way_out, verbose=verbose):
        sequences = Hopkins155(find(home, names) or home)
        if DIGESTS["hopkins155"] is not None:
            sequences.check(DIGESTS["hopkins155"])
    return sequences


# Reading


def _rows(path: Path, delimiter: str | None) -> list[list[str]]:
    with damage(path, "cannot be read"):
        text = read_file(path, LARGEST_TEXT).decode("utf-8")
        if delimiter is None:
            rows = [re.split(r"[\s,;]+", line.strip()) for line in text.splitlines() if line.strip()]
        else:
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    if len(rows) < 2 or len({len(row) for row in rows}) != 1:
        raise DataError(f"{path}: every line must have the same number of fields; it is cut short, or another file.")
    return rows


def _numbers(path: Path, rows: list[list[str]]) -> FloatArray:
    with damage(path, "not a table of numbers"):
        return np.array(rows, dtype=float)


def _arrays(path: Path, names: tuple[str, ...]) -> list[Any]:
    """Arrays of an .npz file; pickled and oversized ones are refused."""
    with damage(path, "not the expected file"), zipfile.ZipFile(path) as archive:
        contents = [read_member(archive, f"{name}.npy", path, LARGEST_MEMBER) for name in names]
        return [read_npy(content, path) for content in contents]


def _hopkins_members(path: Path) -> dict[str, str]:
    """The file of every sequence; names that are not a plain <name>/<name>_truth.mat are ignored."""
    with damage(path, "not a complete archive"):
        if path.is_dir():
            sizes = {str(file.relative_to(path)): file.stat().st_size for file in path.rglob("*_truth.mat")}
        else:
            with zipfile.ZipFile(path) as archive:
                sizes = {info.filename: info.file_size for info in archive.infolist()}
    if path.suffix == ".npz":
        named = {name.removesuffix("/X.npy"): name for name in sizes if name.endswith("/X.npy")}
    else:
        matches = {file: TRUTH.search(file.replace(os.sep, "/")) for file in sizes}
        named = {m.group(1): file for file, m in matches.items() if m}
    check_size(sum(sizes[file] for file in named.values()), path, LARGEST_SEQUENCES)
    kept = {name: file for name, file in named.items() if name not in LEFT_OUT}
    return dict(zip(kept, kept, strict=True)) if path.suffix == ".npz" else kept


def _tracks(content: bytes, source: str) -> tuple[FloatArray, IntArray]:
    """x (3, points, frames) and s (points) of a _truth.mat file as points × 2 frames, and the motions."""
    with damage(source, "not a readable MATLAB file with x and s"):
        x, s = read_mat(content, ("x", "s"), source, LARGEST_MEMBER)
        x, s = x.astype(float), s.ravel().astype(int)
    if x.ndim != 3 or x.shape[0] < 2 or x.shape[1] != len(s):
        raise DataError(
            f"{printable(source)}: x must have shape (3, points, frames) and s one entry for each point, got "
            f"{x.shape} and {s.shape}."
        )
    return x[:2].transpose(1, 2, 0).reshape(len(s), -1), s
