"""Where data sets lie: a local folder, or a download into it that is checked before it counts."""

import hashlib
import http.client
import io
import math
import os
import struct
import time
import urllib.error
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, whosmat

from biclique.exceptions import DataError, printable
from biclique.progress import Progress
from biclique.tables.atomic_files import atomic_path

VARIABLE = "BICLIQUE_DATA"
CHUNK = 1 << 16
SECONDS = 30.0
"""Seconds without an answer."""

MOST_SECONDS = 600.0
"""Seconds of a whole download."""

LARGEST_DOWNLOAD = 2**30


def data_home(folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder of data sets: the argument, else the environment variable BICLIQUE_DATA, else ~/.cache/biclique."""
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise DataError(f"data_home must be the name of a folder, got {folder!r}.")
    chosen = folder if folder is not None else os.environ.get(VARIABLE) or Path.home() / ".cache" / "biclique"
    home = Path(chosen).expanduser()
    if home.exists() and not home.is_dir():
        raise DataError(f"data_home must be a folder, {home} is a file.")
    return home


def content_digest(*arrays: Any) -> str:
    """SHA-256 of shapes and of numbers as little-endian 8-byte floats: the same however they were stored."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(np.shape(array)).encode())
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def check_content(name: str, found: str, expected: str | None, source: object) -> None:
    """Refuse data that are not the published ones."""
    if expected is not None and found != expected:
        raise DataError(
            f"{printable(source)}: not the published {name} data (checksum {found[:12]}…, expected {expected[:12]}…): "
            "remove it and fetch it again."
        )


# Downloads


class _ToHttpsAlone(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https, and no others."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.lower().startswith("https://"):
            raise urllib.error.URLError(f"redirected to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(url: str, target: Path, *, verbose: bool = True) -> None:
    """Fetch a file, whole or not at all, with a bar on standard error; within ten minutes, or it is given up."""
    target.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    request = urllib.request.Request(url, headers={"User-Agent": "biclique"})
    opener = urllib.request.build_opener(_ToHttpsAlone)
    with Progress(verbose) as progress:
        progress.note(f"fetching {url}")
        with opener.open(request, timeout=SECONDS) as answer, atomic_path(target) as temporary:
            size, done = int(answer.headers.get("Content-Length") or 0), 0
            with temporary.open("wb") as file:
                while chunk := answer.read1(CHUNK):  # what is there: a slow server does not keep us waiting inside
                    file.write(chunk)
                    done += len(chunk)
                    progress.share("fetching", done / size if size else 0.0)
                    if done > LARGEST_DOWNLOAD:
                        raise urllib.error.URLError(f"more than {LARGEST_DOWNLOAD} bytes")
                    if time.monotonic() - start > MOST_SECONDS:
                        raise urllib.error.URLError(f"{done} bytes came in {MOST_SECONDS:g} seconds, which is too slow")
            if size and done != size:
                raise urllib.error.URLError(f"{done} of {size} bytes came")


@contextmanager
def fetched(name: str, home: Path, files: dict[str, str], way_out: str, *, verbose: bool = True) -> Iterator[None]:
    """Download the files that are missing, or name the files to put into the folder.

    What was downloaded stays only if the block, which reads and checks it, ends well.
    """
    new = [home / file for file in files if not (home / file).exists()]
    try:
        try:
            for file in new:
                download(files[file.name], file, verbose=verbose)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise DataError(
                f"the {name} data are not in {home} and could not be fetched ({printable(error)}): {way_out} "
                f"(or set {VARIABLE}, or pass data_home)."
            ) from error
        yield
    except BaseException:
        for file in new:
            file.unlink(missing_ok=True)
        raise


# Files, members of archives and arrays in them, read within bounds that are checked before memory is taken


LARGEST_MEMBER = 16 * 2**20
"""Bytes of an array or a member of an archive: several times the largest published one."""

MATRIX = 14
"""The kind of an array in MATLAB 5 files."""

COMPRESSED = 15
"""The kind of a compressed element in MATLAB 5 files."""


@contextmanager
def damage(source: object, what: str) -> Iterator[None]:
    """What this file, Python, NumPy and SciPy say about damaged files as one DataError; no warning of theirs."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except DataError as error:
        raise DataError(f"{printable(source)}: {error}") from error
    except Exception as error:  # there is no list of what these parsers raise
        reason = printable(error)[:200] or type(error).__name__
        raise DataError(f"{printable(source)}: {what} ({reason}): remove it and fetch it again.") from error


def check_size(size: float, most: int) -> None:
    """Refuse what is larger than any of the published data."""
    if size > most:
        raise DataError(f"{size:.0f} bytes are more than the published data have: remove it.")


def read_file(path: Path, most: int) -> bytes:
    """A whole file that is not too large."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    check_size(len(content), most)
    return content


def find_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """A member that is not too large, in a compression that is unpacked within bounds."""
    info = archive.getinfo(name)
    check_size(info.file_size, LARGEST_MEMBER)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError("a kind of compression that the published data do not use: remove it.")
    return info


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A whole member, however much more its data would unpack to than it announces."""
    info = find_member(archive, name)
    with archive.open(info) as file:
        return file.read(info.file_size + 1)  # with a number, zipfile unpacks no more than that


def read_npy(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    """An array of real numbers in an archive, whose header announces no more than there is."""
    with archive.open(find_member(archive, name)) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise DataError("X and y must be real numbers.")
    return array


def read_mat(content: bytes, names: tuple[str, ...]) -> list[np.ndarray[Any, Any]]:
    """Arrays of real numbers from a MATLAB file; their shapes are checked before they are read."""
    plain = _unpacked(content)
    shapes = [(name, shape) for name, shape, _ in whosmat(io.BytesIO(plain)) if name in names]
    if sorted(name for name, _ in shapes) != sorted(names):
        raise DataError(f"not a readable MATLAB file with {' and '.join(names)}, each once.")
    for _, shape in shapes:
        check_size(8 * math.prod(shape) if min(shape, default=0) >= 0 else math.inf, LARGEST_MEMBER)
    variables = loadmat(io.BytesIO(plain), variable_names=names)
    arrays = [np.asarray(variables[name]) for name in names]
    if any(array.dtype.kind not in "iuf" for array in arrays):
        raise DataError(f"{' and '.join(names)} must be real numbers.")
    return arrays


def _unpacked(content: bytes) -> bytes:
    """A MATLAB 5 file without compression: SciPy would unpack any amount, and memory is taken as announced."""
    if 0 in content[:4]:
        return content  # MATLAB 4, in which nothing is compressed
    order = "<" if content[126:128] == b"IM" else ">"
    parts, place, total = [content[:128]], 128, 128
    while place + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, place)
        part = content[place : place + 8 + size]
        place += 8 + size
        if kind == COMPRESSED:
            part = zlib.decompressobj().decompress(part[8:], LARGEST_MEMBER + 1)
        total += len(part)
        check_size(total, LARGEST_MEMBER)
        inner, announced = struct.unpack_from(f"{order}II", part)
        if inner != MATRIX or announced > len(part) - 8:
            raise DataError("not a readable MATLAB file: a variable is damaged.")
        parts.append(part[: 8 + announced])
    return b"".join(parts)
