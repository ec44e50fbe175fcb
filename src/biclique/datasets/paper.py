"""Data sets: scikit-learn's by name, and those of the paper: iris, spine, ovarian, Hopkins155.

Each is looked for in ``data_home`` in the layout named in its docstring, converted or original, then fetched from its
public source. What was read, features and all labels, is checked against the published numbers by a checksum of its
contents. Nothing is unpickled, and archives are read member by member, never unpacked.
"""

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.utils import Bunch

from biclique._typing import FloatArray, IntArray
from biclique.datasets.home import (
    LARGEST_MEMBER,
    VARIABLE,
    check_content,
    check_size,
    content_digest,
    damage,
    fetched,
    read_file,
    read_mat,
    read_member,
    read_npy,
)
from biclique.datasets.home import data_home as _home
from biclique.exceptions import DataError, ParameterError, printable

SHIPPED: dict[str, Callable[[], Any]] = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
    "linnerud": datasets.load_linnerud,
}
"""The tables that come with scikit-learn."""

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
DIGESTS: dict[str, str | None] = {
    "spine": "85d99e7aaa5d35f2e84dfd15e3a9a89951b296463c0f545542ab10ae6489929f",
    "ovarian100": "688ad13a5f71be4bbfd275ab80af4378b0898ede8a115c47bf053f286b376f42",
    "ovarian4000": "68bd9e82e5cbd64ade923284901dca20c17ba55ae3040a544f04014e6fb7af35",
    "hopkins155": "0fcb97aac02312836987ac0b74ea6157fc37691952be6f6276199c07d7b32d53",
}
"""Checksums of the contents, features then labels; of Hopkins155 that of the names and checksums of its sequences."""

LARGEST_TEXT = 4 * 2**20
"""Bytes of a text: several times the largest published one."""

LARGEST_SEQUENCES = 256 * 2**20
"""Bytes of all sequences of Hopkins155: several times those published."""

TRUTH = re.compile(r"(?:^|/)([A-Za-z0-9_]+)/\1_truth\.mat$")
LEFT_OUT = "dancing"
"""Five motions; not one of the 155."""


def load_shipped(name: str) -> Any:
    """A scikit-learn Bunch; ``target_names`` is None if the target is not a class."""
    bunch = SHIPPED[name]()
    if name in ("diabetes", "linnerud"):
        bunch.target_names = None
    return bunch


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
    names = () if (home / "spine.csv").exists() else ("column_2C.dat", "column_3C.dat")
    way_out = f"put spine.csv, or UCI's column_2C.dat and column_3C.dat, into {home}"
    with fetched("spine", home, {name: SPINE_URL + name for name in names}, way_out, verbose=verbose):
        X, two, three = _read_spine(home)
        codes = [np.unique(labels, return_inverse=True)[1] for labels in (two, three)]
        check_content("spine", content_digest(X, *codes), DIGESTS["spine"], home)
    target_names, target = np.unique(two if classes == 2 else three, return_inverse=True)
    return Bunch(
        data=X,
        target=target,
        target_names=target_names,
        feature_names=list(SPINE_FEATURES),
        n_clusters=classes,
        name="spine",
    )


def _read_spine(home: Path) -> tuple[FloatArray, list[str], list[str]]:
    """Features, two classes, three classes."""
    table = home / "spine.csv"
    if table.exists():
        header, *rows = _fields(table)
        if header != [*SPINE_FEATURES, "label_3c", "label_2c"]:
            raise DataError(f"{table}: its columns must be {', '.join(SPINE_FEATURES)}, label_3c, label_2c.")
        return _numbers(table, [row[:6] for row in rows]), [row[7] for row in rows], [row[6] for row in rows]
    first, second = home / "column_2C.dat", home / "column_3C.dat"
    two, three = _fields(first), _fields(second)
    if len(two[0]) != 7 or len(three[0]) != 7:
        raise DataError(f"{first}: every line must have six numbers and a class, got {len(two[0])} fields.")
    X = _numbers(first, [row[:6] for row in two])
    if not np.array_equal(X, _numbers(second, [row[:6] for row in three])):
        raise DataError(f"{second}: its features differ from those of {first.name}.")
    return X, [row[6] for row in two], [row[6] for row in three]


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
    if path.exists():
        X, y = _arrays(path, ("X", "y"))
        return _ovarian(name, X, y, path)
    if features == 4000:
        raise DataError(
            f"the ovarian data with 4000 features are not in {home}: in MATLAB, 'load ovariancancer', and put its "
            f"observations as X (216 × 4000) and its groups as y (1 for cancer) into {path} with numpy.savez "
            f"(or set {VARIABLE}, or pass data_home)."
        )
    path = home / "ovarian_dataset.dat"
    way_out = f"put {name}.npz or MATLAB's {path.name} into {home}"
    with fetched(name, home, {path.name: OVARIAN_URL}, way_out, verbose=verbose):
        table = _numbers(path, _fields(path))
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
        motions, target = np.unique(y, return_inverse=True)
        return Bunch(data=X, target=target, n_clusters=len(motions), name=name)

    def digest(self) -> str:
        """The checksum of names, tracks and motions."""
        lines = [f"{name} {content_digest(*self._read(name))}\n" for name in self.names]
        return sha256("".join(lines).encode()).hexdigest()

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
                    content = read_member(archive, member)
        with damage(source, "not a readable MATLAB file with x and s"):
            return _tracks(content)


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
    path = next((home / name for name in ("hopkins155.npz", "Hopkins155") if (home / name).exists()), None)
    files = {} if path is not None else {"Hopkins155.zip": HOPKINS_URL}
    way_out = f"put hopkins155.npz, the benchmark's Hopkins155.zip or its unpacked folder Hopkins155 into {home}"
    with fetched("Hopkins155", home, files, way_out, verbose=verbose):
        sequences = Hopkins155(path or home / "Hopkins155.zip")
        check_content("Hopkins155", sequences.digest(), DIGESTS["hopkins155"], sequences.path)
    return sequences


# Reading


def _fields(path: Path) -> list[list[str]]:
    """The fields of every line of a text, which are parted by spaces or commas."""
    with damage(path, "cannot be read"):
        text = read_file(path, LARGEST_TEXT).decode("utf-8")
    rows = [re.split(r"[\s,;]+", line.strip()) for line in text.splitlines() if line.strip()]
    if len(rows) < 2 or len({len(row) for row in rows}) != 1:
        raise DataError(f"{path}: every line must have the same number of fields; it is cut short, or another file.")
    return rows


def _numbers(path: Path, rows: list[list[str]]) -> FloatArray:
    with damage(path, "not a table of numbers"):
        return np.array(rows, dtype=float)


def _arrays(path: Path, names: tuple[str, ...]) -> list[Any]:
    """Arrays of an .npz file, floats in double precision; pickled and oversized ones are refused."""
    with damage(path, "not the expected file"), zipfile.ZipFile(path) as archive:
        found = [read_npy(archive, f"{name}.npy") for name in names]
    with np.errstate(invalid="ignore"):  # NumPy warns of NaN with some bits, which a damaged file may have
        return [array.astype(np.float64) if array.dtype.kind == "f" else array for array in found]


def _hopkins_members(path: Path) -> dict[str, str]:
    """The file of every sequence; names that are not a plain <name>/<name>_truth.mat are ignored."""
    with damage(path, "not a complete archive"):
        if path.is_dir():
            sizes = {file.relative_to(path).as_posix(): file.stat().st_size for file in path.rglob("*_truth.mat")}
        else:
            with zipfile.ZipFile(path) as archive:
                sizes = {info.filename: info.file_size for info in archive.infolist()}
        if path.suffix == ".npz":
            members = {file.removesuffix("/X.npy"): file for file in sizes if file.endswith("/X.npy")}
        else:
            members = {match.group(1): file for file in sizes if (match := TRUTH.search(file))}
        check_size(sum(sizes[file] for file in members.values()), LARGEST_SEQUENCES)
    members.pop(LEFT_OUT, None)
    return members


def _tracks(content: bytes) -> tuple[FloatArray, IntArray]:
    """x (3, points, frames) and s (points) of a _truth.mat file as points × 2 frames, and the motions."""
    x, s = read_mat(content, ("x", "s"))
    x, s = x.astype(float), s.ravel().astype(int)
    if x.ndim != 3 or x.shape[0] < 2 or x.shape[1] != len(s):
        raise DataError(
            f"x must have shape (3, points, frames) and s one entry for each point, got {x.shape} and {s.shape}."
        )
    return x[:2].transpose(1, 2, 0).reshape(len(s), -1), s
