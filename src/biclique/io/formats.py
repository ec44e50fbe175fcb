"""The table formats, in one dictionary: everything that depends on the kind of a file looks here.

A new format is one ``TableFormat``, registered for each of its endings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias

from numpy.typing import NDArray

from biclique.io.csv_files import TextSink, read_text
from biclique.io.numpy_files import NpySink, open_npy, read_numpy
from biclique.io.parquet_files import ParquetChunks, ParquetSink, import_pyarrow, open_whole
from biclique.io.safe_files import ChunkReader, TableReader, held
from biclique.io.zarr_files import import_zarr, open_zarr


class LabelSink(Protocol):
    """An open file that takes labels."""

    @property
    def with_ids(self) -> bool:
        """Whether it stores the id of each row."""

    def write(self, keys: NDArray[Any] | list[str], labels: NDArray[Any]) -> None:
        """Append rows: whole numbers or texts as keys."""

    def close(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """End the file, or give it up after an error."""


Writer: TypeAlias = Callable[[Path, tuple[str, str]], LabelSink]
"""Opens a file for labels, from its path and the names of its two columns."""


@dataclass(frozen=True)
class TableFormat:
    """What can be done with one kind of file."""

    name: str  # in messages
    endings: tuple[str, ...]  # of names; files are written with the first
    read: TableReader
    chunks: ChunkReader | None = None
    writer: Writer | None = None
    place: Literal["file", "folder", "both"] = "file"  # "both": a folder of files is read too, but not in chunks
    needs: Callable[[], object] = lambda: None  # imports the package that it needs, or names the install line


FORMATS: dict[str, TableFormat] = {
    ending: kind
    for kind in (
        TableFormat("CSV", (".csv", ".txt"), read_text, writer=TextSink),
        TableFormat(
            "TSV", (".tsv", ".tab"), partial(read_text, delimiter="\t"), writer=partial(TextSink, delimiter="\t")
        ),
        TableFormat(".npy", (".npy",), read_numpy, open_npy, NpySink),
        TableFormat(".npz", (".npz",), read_numpy),
        TableFormat(
            "Parquet", (".parquet", ".pq"), held(open_whole), ParquetChunks, ParquetSink, "both", import_pyarrow
        ),
        TableFormat(".zarr", (".zarr",), held(open_zarr), open_zarr, place="folder", needs=import_zarr),
    )
    for ending in kind.endings
}
"""By the ending of the name, in small letters."""


def formats(*, in_chunks: bool = False) -> list[TableFormat]:
    """Every format once; or those that can be read in chunks."""
    return [kind for kind in dict.fromkeys(FORMATS.values()) if kind.chunks is not None or not in_chunks]


def writers() -> dict[str, Writer]:
    """What writes labels, by the ending of the file."""
    return {kind.endings[0]: kind.writer for kind in formats() if kind.writer is not None}


def find_format(path: str | os.PathLike[str]) -> TableFormat | None:
    """The format that the name says: by its ending, or by that of a folder above it, as in ``a.zarr/x``."""
    file = Path(path)
    if file.suffix.lower() in FORMATS:
        return FORMATS[file.suffix.lower()]
    folders = (kind for kind in formats() if kind.place == "folder")
    return next((kind for kind in folders if any(part.lower().endswith(kind.endings) for part in file.parts)), None)


def listed(words: Sequence[str], last: str) -> str:
    """``a, b or c``."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)
