"""Fitted models as files of skops: a zip of JSON and of .npy arrays. Reading one runs no code of its own."""

import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from biclique import __version__
from biclique.cluster.estimator import Estimator
from biclique.exceptions import DataError, MemoryLimitError, ParameterError, printable
from biclique.kernels.named import KERNELS
from biclique.runtime.memory import require_memory
from biclique.runtime.namespace import is_dask
from biclique.tables.atomic_files import atomic_path, check_target

OURS = re.compile(
    r"biclique\.(cluster|features|fit|gram|hypergraph|kernels|multiway|neighbors|selection|spectral|tables)(\.\w+)+"
)
"""Classes of ours that a model may consist of."""

OTHERS = ("numpy.dtype", "scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix")
"""Classes that a model may consist of besides, and besides those that skops trusts."""

CALLED = "biclique.hypergraph.hypergraph.Hypergraph"
"""The one class of ours that is made by calling it, because it checks its arguments; others get their attributes."""

LARGE = ("labels_", "embedding_")
"""One value or row for every training row, which ``predict`` does not need."""

UNCOUNTED = ("random_state", "seed", "rows", "n_rows", "unseen", "_lazy_sizes", "max_iter")
"""Attributes that may be a whole number above the bytes of the file."""

SCHEMA = "schema.json"
"""The member of the zip in which skops declares every object."""

SCHEMA_BYTES = 2**26
"""Most bytes of that text: parsed, it takes many times its size."""

ABOUT = "biclique.json"
"""The member of the zip with our version and the notes."""

DAMAGED = "it was damaged, or it is no model that biclique wrote: save it again"


# Writing


def save(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    include: Sequence[str] = (),
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model, or a pipeline that ends in one, into a file.

    The file is one of skops: a zip of JSON and .npy arrays. ``load`` makes the same model of it: ``predict``,
    ``transform`` and ``predict_proba`` give the same bits. It holds estimators of biclique and of scikit-learn; code
    of your own is refused by its name. The file is written whole or not at all.

    Parameters
    ----------
    model : estimator or Pipeline
    path : str or path
        Such as "model.skops". An existing file is replaced.
    include : sequence of "labels_", "embedding_"
        What is left out otherwise: one value or one row for every training row, which ``predict`` does not need.
    notes : dictionary, optional
        What JSON can hold, to keep beside the model; ``load_with_notes`` returns it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import biclique
    >>> X = load_iris().data
    >>> model = biclique.BicliqueSpectralClustering(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     biclique.save(model, pathlib.Path(folder) / "iris.skops")
    ...     again = biclique.load(pathlib.Path(folder) / "iris.skops")
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    import skops.io
    from skops.io.exceptions import UnsupportedTypeException

    if isinstance(include, str) or not set(include) <= set(LARGE):
        raise ParameterError(f"include must be a list of some of {', '.join(map(repr, LARGE))}, got {include!r}.")
    check_target(path)
    _check_fitted(model)
    try:
        content = io.BytesIO(skops.io.dumps(_without_large(model, include)))
    except UnsupportedTypeException as error:
        raise ParameterError(f"this {type(model).__name__} cannot be saved: {error}") from error
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(ABOUT, json.dumps({"version": __version__, "notes": dict(notes or {})}))
        trusted = _trusted(archive, content.getbuffer().nbytes)
    foreign = set(skops.io.get_untrusted_types(data=content.getvalue())) - set(trusted)
    if foreign:
        raise ParameterError(
            f"{', '.join(sorted(foreign))} cannot be saved: a file holds estimators of biclique and scikit-learn and "
            "their numbers, no code of your own. Enter a kernel class in biclique.kernels.KERNELS, or fit the matrix "
            "of similarities with affinity='precomputed'."
        )
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.getvalue())


def _check_fitted(model: object) -> None:
    if not isinstance(model, BaseEstimator):
        raise ParameterError(f"model must be an estimator or a Pipeline, got a {type(model).__name__}.")
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise ParameterError(f"this {type(model).__name__} is not fitted: call fit first.") from error


def _without_large(model: Any, include: Sequence[str]) -> Any:
    """A copy without what grows with the training rows, and without a folder for intermediate results."""
    light = copy(model)
    if isinstance(model, Pipeline):
        light.memory = None
        light.steps = [(name, _without_large(step, include)) for name, step in model.steps]
    if not isinstance(model, Estimator):
        return light
    held = vars(model)
    if any(is_dask(held.get(name)) for name in include):
        raise ParameterError(
            f"include names {', '.join(map(repr, include))}, lazy in a model that was fitted on a Dask collection: "
            "leave include out, and write such arrays by themselves, such as model.labels_.to_zarr(path)."
        )
    left_out = [name for name in LARGE if name in held and name not in include]
    if left_out:
        light._left_out = left_out
    for name in left_out:
        vars(light).pop(name, None)  # a copy may have dropped what is lazy
    if held.get("device") is not None:
        light.device = str(held["device"])
    return light


# Reading


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that ``save`` wrote.

    No code in the file is run: it holds numbers and text, and the classes it may name are those of biclique,
    scikit-learn and NumPy. A file that is damaged, or of a newer version, is a ``DataError``.
    """
    return load_with_notes(path)[0]


def load_with_notes(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """The model in a file, and the notes that were saved beside it."""
    file, name = Path(path), printable(os.fspath(path))
    try:
        if not file.exists():
            raise DataError("no such file")
        if not file.is_file():
            raise DataError("is a folder, a pipe or a device, and a model is a file")
        with file.open("rb") as opened:
            return _read(opened)
    except MemoryLimitError:
        raise
    except DataError as error:
        raise DataError(f"{name}: {printable(error)}.") from error
    except Exception as error:  # of zipfile, json, NumPy and skops
        raise DataError(f"{name}: cannot be read ({printable(error)}): {DAMAGED}.") from error


def _read(file: BinaryIO) -> tuple[Any, dict[str, Any]]:
    import skops.io

    size = os.fstat(file.fileno()).st_size
    require_memory(2 * size, "this model", "close other programs.")
    with zipfile.ZipFile(file) as archive:
        trusted = _trusted(archive, size)
        about = json.loads(archive.read(ABOUT)) if ABOUT in archive.namelist() else {}
    try:
        model = skops.io.load(file, trusted=trusted)
        _check_fitted(model)
        _check_parts(model, size)
    except Exception as error:
        written = about.get("version")
        if written in (None, __version__):
            raise
        raise DataError(
            f"written by biclique {written}, and this is {__version__}, which cannot read it ({error}): install that "
            "version, or fit and save the model again"
        ) from error
    return model, dict(about.get("notes", {}))


def _trusted(archive: zipfile.ZipFile, size: int) -> list[str]:
    """Names of the classes that the objects of a file may have: of ``FOLDERS``, and of the table of kernels.

    A file that would take more memory than its size is refused.
    """
    members = {member.filename: member for member in archive.infolist()}
    if "model.json" in members:
        raise DataError("written by biclique 0.1, which alone can read it: fit again")
    if sum(member.file_size for member in members.values()) > size:
        raise DataError(f"its members have more bytes than the file: {DAMAGED}")
    if members[SCHEMA].file_size > SCHEMA_BYTES:
        raise DataError(f"its text has {members[SCHEMA].file_size} bytes, limit {SCHEMA_BYTES}: {DAMAGED}")
    trusted = {*OTHERS, *(f"{kind.__module__}.{kind.__name__}" for kind in KERNELS.values())}
    arrays = set()

    def look(node: dict[str, Any]) -> None:
        """One of the objects that the JSON text declares."""
        if isinstance(node.get("file"), str):
            arrays.add((node["file"], node.get("__id__")))
        module, kind = str(node.get("__module__")), str(node.get("__class__"))
        name = f"{module}.{kind}"
        if OURS.fullmatch(name):
            if node["__loader__"] != ("ConstructorFromReduceNode" if name == CALLED else "ObjectNode"):
                raise DataError(f"{name} is no object: {DAMAGED}")
            found = getattr(import_module(module), kind, None)
            if isinstance(found, type) and found.__module__ == module:
                trusted.add(name)

    json.loads(archive.read(SCHEMA), object_hook=look)
    if len(arrays) > len(members):
        raise DataError(f"it reads arrays more than once: {DAMAGED}")
    return sorted(trusted)


def _check_parts(model: object, size: int) -> None:
    """Refuse what ``predict`` would allocate for, or count to: labels and indices above the number of all values in
    the arrays, counts above the bytes of the file, indices that point outside of a sparse matrix.
    """
    parts = list(_parts("model", model, set()))
    values = sum(part.size for _, part in parts if isinstance(part, np.ndarray))
    for name, part in parts:
        if sparse.issparse(part):
            part.check_format(full_check=True)
        if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and np.abs(part).max(initial=0) > values:
            raise DataError(f"{name} has the index {np.abs(part).max()} among {values} values: {DAMAGED}")
        if isinstance(part, (int, np.integer)) and abs(int(part)) > size and name not in UNCOUNTED:
            raise DataError(f"{name} is {part} in a file of {size} bytes: {DAMAGED}")
        if isinstance(part, Pipeline) and part.memory is not None:
            raise DataError(f"a Pipeline names the folder {part.memory}: {DAMAGED}")
        if is_dataclass(part) and not {field.name for field in fields(part)} <= set(vars(part)):
            raise DataError(f"a {type(part).__name__} is not whole: {DAMAGED}")


def _parts(name: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Every value that a fit left in a model, with the name of its attribute; of scikit-learn's, that of pipelines."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield name, value
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, (list, tuple)):
        inside = [(name, part) for part in value]
    elif isinstance(value, Pipeline):
        inside = [("steps", value.steps)]
    elif type(value).__module__.startswith("biclique.") and hasattr(value, "__dict__"):
        parameters = value.get_params(deep=False) if isinstance(value, BaseEstimator) else {}
        inside = [(key, part) for key, part in vars(value).items() if key not in parameters]  # predict reads no others
    for key, part in inside:
        yield from _parts(str(key), part, seen)
