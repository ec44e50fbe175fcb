"""Where data sets lie: a local folder, or a download into it that is checked before it counts."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from biclique.exceptions import DataError
from biclique.io import atomic_path
from biclique.printable import printable
from biclique.progress import Progress

VARIABLE = "BICLIQUE_DATA"
CHUNK = 1 << 16
SECONDS = 30.0
"""Without an answer."""

MOST_SECONDS = 600.0
"""Of a whole download."""

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


def find(home: Path, names: Sequence[str]) -> Path | None:
    """The first of some names that exists in the folder."""
    return next((home / name for name in names if (home / name).exists()), None)


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


def download(url: str, target: Path, *, verbose: bool = True) -> None:
    """Fetch a file, whole or not at all, with a bar on standard error; within ten minutes, or it is given up."""
    target.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with Progress(verbose) as progress:
        progress.say(f"fetching {url}")
        request = urllib.request.Request(url, headers={"User-Agent": "biclique"})
        opener = urllib.request.build_opener(_ToHttpsAlone)
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


class _ToHttpsAlone(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https, and no others."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.lower().startswith("https://"):
            raise urllib.error.URLError(f"redirected to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def fetched(name: str, home: Path, files: dict[str, str], instructions: str, *, verbose: bool = True) -> Iterator[None]:
    """Download the files that are missing, or say exactly what to put where.

    What was downloaded stays only if the block, which reads and checks it, ends well.
    """
    new: list[Path] = []
    try:
        for file, url in files.items():
            if not (home / file).exists():
                download(url, home / file, verbose=verbose)
                new.append(home / file)
    except (OSError, ValueError, http.client.HTTPException) as error:
        _discard(new)
        raise DataError(
            f"the {name} data are not in {home} and could not be fetched ({printable(error)}): {instructions} "
            f"(or set {VARIABLE}, or pass data_home)."
        ) from error
    try:
        yield
    except BaseException:
        _discard(new)
        raise


def _discard(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
