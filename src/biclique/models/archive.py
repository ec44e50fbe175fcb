"""A file of a nested state: a zip of one JSON text and of .npy arrays, read without trust.

The members are ``model.json`` and ``arrays/0.npy``, ``arrays/1.npy``, …, all stored as they are: nothing is compressed,
so a file never needs more memory than its own size. ``model.json`` declares dtype, shape and checksum of every array;
the comment of the zip has the checksum of ``model.json``. All declared sizes are compared with the file before an array
is read. Nothing is unpickled.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from biclique.exceptions import BicliqueError, DataError, printable
from biclique.fit.state import State, Value
from biclique.io.chunks import HEADER_BYTES, read_header
from biclique.runtime import parse_memory_limit, require
from biclique.tables.atomic_files import atomic_path

FORMAT = 1
"""Of the file. A larger number is a file of a newer version."""
TEXT = "model.json"
TEXT_BYTES = 2**26
"""Most bytes of the JSON text: parsed, it takes many times its size."""
ARRAY = re.compile(r"arrays/(0|[1-9][0-9]{0,5})\.npy")
KINDS = "biufUV"
"""Of the dtypes of arrays: truth values, whole numbers, floats, text, and bytes, which digests of rows are."""
MOST_AXES = 8
DAMAGED = "it was damaged, or it is no model that biclique wrote; save it again"


# Writing


def write_archive(path: str | os.PathLike[str], state: State, made_by: Mapping[str, str]) -> dict[str, int]:
    """Write a state whole or not at all; the bytes of each part, by the names that lead to it."""
    arrays: list[np.ndarray[Any, Any]] = []
    sizes: Counter[str] = Counter()
    numbers: dict[int, int] = {}

    def said(value: Value, place: str) -> Any:
        if isinstance(value, np.ndarray):
            if id(value) not in numbers:  # an array that is in two places is written once
                numbers[id(value)] = len(arrays)
                arrays.append(value)
                sizes[place] += value.nbytes
            return {"array": numbers[id(value)]}
        if isinstance(value, dict):
            return {key: said(x, f"{place}.{key}".lstrip(".")) for key, x in value.items()}
        if isinstance(value, list):
            return [said(x, place) for x in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}  # JSON has no word for it
        return value

    tree = said(state, "")
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        declared = []
        for number, array in enumerate(arrays):
            with archive.open(_member(f"arrays/{number}.npy"), "w", force_zip64=True) as file:
                out = _Digesting(file)
                np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)
            declared.append({"dtype": array.dtype.str, "shape": list(array.shape), "sha256": out.digest.hexdigest()})
        whole = {"format": FORMAT, "made_by": dict(made_by), "arrays": declared, "state": tree}
        text = json.dumps(whole, allow_nan=False).encode()
        sizes["text"] = len(text)
        if len(text) > TEXT_BYTES:
            raise DataError(f"cannot write {path}: names and settings take {len(text)} bytes, limit {TEXT_BYTES}.")
        archive.writestr(_member(TEXT), text)
        archive.comment = _signed(text)
    return dict(sizes)


def _member(name: str) -> zipfile.ZipInfo:
    """One date for all: equal models are equal files."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    return info


def _signed(text: bytes) -> bytes:
    return b"biclique model sha256 " + hashlib.sha256(text).hexdigest().encode()


class _Digesting:
    """A file that sees its checksum on the way."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return int(self.file.write(data))


# Reading


@dataclass(frozen=True)
class _Declared:
    """What the JSON text says about an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    sha256: str

    @property
    def n_bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def read_archive(path: str | os.PathLike[str], memory_limit: object = "auto") -> tuple[State, dict[str, str]]:
    """The state in a file, and the versions that wrote it."""
    name = printable(os.fspath(path))
    limit = parse_memory_limit(memory_limit)
    with _in_one_sentence(name), Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not zipfile.is_zipfile(file):
            raise DataError(f"{name}: no model of biclique, which is a zip file: {DAMAGED}.")
        with zipfile.ZipFile(file) as archive:
            members = _checked_members(name, archive, size)
            require(sum(one.file_size for one in members.values()), limit, name, "raise memory_limit.")
            whole = _read_text(name, archive, members)
            declared = [_declaration(name, one) for one in _of_kind(name, whole, "arrays", list)]
            expected = {TEXT, *(f"arrays/{number}.npy" for number in range(len(declared)))}
            if expected != set(members):
                raise DataError(f"{name}: its members are not those that {TEXT} declares: {DAMAGED}.")
            arrays = [
                _read_array(name, archive, members[f"arrays/{number}.npy"], one) for number, one in enumerate(declared)
            ]
            state = _restored(name, _of_kind(name, whole, "state", dict), arrays)
            made_by = {str(key): str(x) for key, x in _of_kind(name, whole, "made_by", dict).items()}
    return state, made_by


@contextmanager
def _in_one_sentence(name: str) -> Iterator[None]:
    """All errors of zipfile, json and NumPy about a damaged file, in our words."""
    try:
        yield
    except (BicliqueError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise DataError(f"{name}: no such file.") from error
    except IsADirectoryError as error:
        raise DataError(f"{name}: is a folder, and a model is a file.") from error
    except OSError as error:
        damaged = f": {DAMAGED}" if error.errno == errno.EINVAL else ""  # a place before the start of the file
        raise DataError(f"{name}: cannot be read ({printable(error.strerror or error)}){damaged}.") from error
    except Exception as error:  # BadZipFile, EOFError, NotImplementedError, RecursionError, ValueError and their like
        raise DataError(f"{name}: cannot be read ({printable(error)}): {DAMAGED}.") from error


def _checked_members(name: str, archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Members by their names: none twice, none compressed, none elsewhere, and all no larger than the file."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        inside = member.filename
        shown = printable(inside[:60])
        if inside != TEXT and not ARRAY.fullmatch(inside):
            raise DataError(f"{name}: has a member {shown!r}, which no model has: {DAMAGED}.")
        if inside in members:
            raise DataError(f"{name}: has two members {shown!r}: {DAMAGED}.")
        if (
            member.compress_type != zipfile.ZIP_STORED
            or member.flag_bits & 1
            or member.compress_size != member.file_size
        ):
            raise DataError(f"{name}: its member {shown!r} is compressed or encrypted, which no model is: {DAMAGED}.")
        members[inside] = member
    total = sum(member.file_size for member in members.values())
    if total > size:
        raise DataError(f"{name}: its members declare {total} bytes, and the file has {size}: {DAMAGED}.")
    if TEXT not in members:
        raise DataError(f"{name}: has no member {TEXT!r}: {DAMAGED}.")
    return members


def _read_text(name: str, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if members[TEXT].file_size > TEXT_BYTES:
        raise DataError(f"{name}: {TEXT} declares {members[TEXT].file_size} bytes, limit {TEXT_BYTES}: {DAMAGED}.")
    text = archive.read(TEXT)
    whole = json.loads(text)
    if isinstance(whole, dict) and isinstance(whole.get("format"), int) and whole["format"] > FORMAT:
        by = whole.get("made_by")
        version = printable(by.get("biclique")) if isinstance(by, dict) else "a newer version"
        raise DataError(
            f"{name}: has format {whole['format']}, written by biclique {version}, and this version reads formats up "
            f"to {FORMAT}: upgrade with pip install --upgrade biclique."
        )
    if not isinstance(whole, dict) or whole.get("format") != FORMAT or isinstance(whole["format"], bool):
        raise DataError(f"{name}: {TEXT} names no format: {DAMAGED}.")
    if archive.comment != _signed(text):
        raise DataError(f"{name}: {TEXT} does not have the checksum that it was written with: {DAMAGED}.")
    return whole


def _of_kind(name: str, whole: Mapping[str, Any], key: str, kind: type) -> Any:
    if not isinstance(whole.get(key), kind):
        raise DataError(f"{name}: {TEXT} has no {key!r}: {DAMAGED}.")
    return whole[key]


def _declaration(name: str, said: object) -> _Declared:
    """Dtype, shape and checksum, checked: none is huge or unusual."""
    parts = said if isinstance(said, dict) else {}
    dtype, shape, sha256 = parts.get("dtype"), parts.get("shape"), parts.get("sha256")
    if not (
        isinstance(dtype, str)
        and re.fullmatch(rf"[<>|][{KINDS}][0-9]{{1,9}}", dtype)
        and isinstance(shape, list)
        and len(shape) <= MOST_AXES
        and all(type(n) is int and 0 <= n < 2**48 for n in shape)
        and isinstance(sha256, str)
    ):
        raise DataError(f"{name}: {TEXT} declares an array {printable(said)[:80]}: {DAMAGED}.")
    return _Declared(np.dtype(dtype), tuple(shape), sha256)


def _read_array(
    name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, declared: _Declared
) -> np.ndarray[Any, Any]:
    """An array that is what was declared, to the byte."""
    what = f"{name}: {member.filename}"
    if not declared.n_bytes < member.file_size <= declared.n_bytes + HEADER_BYTES:
        raise DataError(
            f"{what} has {member.file_size} bytes, and {declared.dtype} of shape {declared.shape} was declared: "
            f"{DAMAGED}."
        )
    content = archive.read(member)
    if hashlib.sha256(content).hexdigest() != declared.sha256:
        raise DataError(f"{what} does not have the checksum that it was written with: {DAMAGED}.")
    header = read_header(what, content[:HEADER_BYTES])
    if (header.dtype, header.shape) != (declared.dtype, declared.shape) or len(
        content
    ) != header.start + header.n_bytes:
        raise DataError(
            f"{what} holds {header.dtype} of shape {header.shape}, and {declared.dtype} of shape {declared.shape} was "
            f"declared: {DAMAGED}."
        )
    return np.asarray(np.lib.format.read_array(BytesIO(content), allow_pickle=False))


def _restored(name: str, said: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(said, list):
        return [_restored(name, x, arrays) for x in said]
    if not isinstance(said, dict):
        return said
    if set(said) == {"array"}:
        number = said["array"]
        if type(number) is not int or not 0 <= number < len(arrays):
            raise DataError(f"{name}: {TEXT} names array {printable(number)}, which does not exist: {DAMAGED}.")
        return arrays[number]
    if set(said) == {"float"} and said["float"] in ("inf", "-inf", "nan"):
        return float(said["float"])
    return {key: _restored(name, x, arrays) for key, x in said.items()}
