"""Tables in, by the ending of their name: whole as a pandas frame, or in parts as a Dask frame.

A new format is one entry of ``FORMATS``. Nothing is unpickled, and no code that a file names is run.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import TableError, TableWarning, optional, printable, warn_user
from biclique.runtime.memory import require_memory
from biclique.tables.array_tables import array_parts, open_npy, open_zarr, read_array, read_npz
from biclique.tables.frames import INSTALL, as_frame, dask, pandas, settled, texts_of, with_texts
from biclique.tables.parquet_tables import open_groups, open_parquet, read_parquet, rows_of
from biclique.tables.parts import FEWER, Parts, read_unchanged, readable, stamp
from biclique.tables.preparer import TablePreparer
from biclique.tables.text_form import PLAIN, TextForm
from biclique.tables.text_tables import open_text, read_text

UNPACKED = 5
"""How many times larger a packed file is assumed to be in memory."""
COPIES = 3
"""How many times a table is in memory while it is read."""


@dataclass(frozen=True)
class TableFormat:
    """A kind of file."""

    name: str
    read: Callable[[Path, TextForm, Collection[str]], Any]
    """``read(path, form, texts)`` gives a frame."""
    open: Callable[[Path, TextForm, Collection[str]], Parts] | None = None
    """``open(path, form, texts)`` gives its parts; None if such a file is read whole."""
    is_text: bool = False


def read_excel(path: Path, form: TextForm, texts: Collection[str]) -> Any:
    """The first sheet, or the form's; columns that are not in ``texts`` hold what all of their fields mean."""
    optional("openpyxl", INSTALL)
    name = printable(path)
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            raise TableError(
                f"{name}: not a readable Excel file: if it is text, rename it to end in .csv; if it is of an old Excel "
                "(.xls), open it there and save it as .xlsx."
            )
    with pandas().ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(sheet) for sheet in book.sheet_names]
        shown = ", ".join(printable(repr(sheet)) for sheet in sheets)
        if form.sheet and form.sheet not in sheets:
            raise TableError(f"{name}: sheet {form.sheet!r} does not exist; sheets: {shown}.")
        header = None if form.header is False else 0
        frame = pandas().read_excel(book, form.sheet or 0, header=header, dtype=object, na_filter=False)
    frame.columns = ["" if str(name).startswith("Unnamed: ") else str(name).strip() for name in frame.columns]
    others = f" (the first of its sheets {shown}; sheet=… chooses another)" * (len(sheets) > 1 and not form.sheet)
    if header == 0:
        _refuse_title(name + others, frame)
    frame = as_frame(frame, name)
    for column in frame.columns:
        if column not in texts:
            frame[column] = settled(frame[column], form, numbers=True)
    if others:
        warn_user(f"{name}: its first sheet was read; its sheets: {shown}; sheet=… chooses another.", TableWarning)
    frame.attrs["others"] = others
    return frame


def _refuse_title(name: str, frame: Any) -> None:
    """Refuse a sheet with a title above the names of its columns: half of its first line is empty, the last field too.

    The names are the first row of texts without a gap.
    """
    names = list(frame.columns)
    if not names or names[-1] or 2 * names.count("") < len(names):
        return
    for row, fields in enumerate(frame.itertuples(index=False), start=2):
        if all(isinstance(field, str) and field.strip() for field in fields):
            raise TableError(
                f"{name}: its first line lacks names of columns. If they stand in row {row}, delete the rows above it."
            )


TEXT = TableFormat("text file", read_text, open_text, is_text=True)
PARQUET = TableFormat("Parquet file", read_parquet, open_groups)
EXCEL = TableFormat("Excel file", read_excel)
FORMATS = {
    **dict.fromkeys((".csv", ".txt", ".tsv", ".tab", ".csv.gz", ".txt.gz", ".tsv.gz", ".tab.gz"), TEXT),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    ".xlsx": EXCEL,
    ".npy": TableFormat("NumPy file", partial(read_array, open_npy), partial(array_parts, open_npy)),
    ".npz": TableFormat("NumPy file", read_npz),
    ".zarr": TableFormat("Zarr array", partial(read_array, open_zarr), partial(array_parts, open_zarr)),
}
"""The kinds of files, by the ending of their name."""
FOLDERS = (".parquet", ".pq", ".zarr")
"""Endings of names that may be those of folders."""


def ending_of(path: str | os.PathLike[str]) -> str:
    """``.csv``, ``.csv.gz``"""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    return "".join(suffixes if suffixes[-1:] == [".gz"] else suffixes[-1:])


def find_format(path: str | os.PathLike[str]) -> TableFormat | None:
    """The format of a file by its name; None if it is not known."""
    return FORMATS.get(ending_of(path))


@contextmanager
def opened(path: str | os.PathLike[str], form: TextForm = PLAIN) -> Iterator[tuple[Path, TableFormat]]:
    """A file that exists, and its format. Whatever a damaged one makes a library raise becomes one sentence."""
    file, name, kind = Path(path), printable(path), find_format(path)
    if kind is None:
        raise TableError(
            f"{name}: unknown kind of table; the name must end in one of {', '.join(FORMATS)}. Excel saves others as "
            ".xlsx."
        )
    if form.sheet and kind is not EXCEL:
        raise TableError(f"{name}: a {kind.name} has no sheets: leave sheet={form.sheet!r} out.")
    with readable(path, kind.name):
        if not file.exists():
            raise TableError(f"{name}: no such {'folder' if ending_of(path) == '.zarr' else 'file'}.")
        if file.is_dir() and ending_of(path) not in FOLDERS:
            raise TableError(f"{name}: cannot be read: it is a folder.")
        if not file.is_dir() and not file.is_file():
            raise TableError(f"{name}: cannot be read: it is a pipe or a device. Copy it into a file first.")
        yield file, kind


def read_frame(path: str | os.PathLike[str], form: TextForm = PLAIN, *, texts: Collection[str] = ()) -> Any:
    """The whole table as a pandas frame.

    Columns are numbers, booleans, dates or texts; None and NaN are missing values.

    - Columns in ``texts``, such as ids, stay as they are written: "007".
    - ``attrs["name"]`` is the file for messages.
    """
    with opened(path, form) as (file, kind):
        require_memory(COPIES * size_of(path), f"{printable(path)}: the table in memory", FEWER)
        before = stamp(file)
        frame = with_texts(kind.read(file, form, texts), texts)
    name = printable(path) + frame.attrs.get("others", "")
    frame.attrs = {"name": name, "settled": kind.is_text, "stamp": before}
    return frame


def size_of(path: str | os.PathLike[str]) -> int:
    """About how many bytes the table takes in memory."""
    with opened(path) as (file, kind):
        if kind is PARQUET:
            dataset = open_parquet(file)
            return 8 * rows_of(file, dataset) * len(dataset.schema.names)
        if file.is_dir():
            return int(open_zarr(file).nbytes)
        return file.stat().st_size * (UNPACKED if ending_of(path).endswith((".gz", "x", "z")) else 1)


def open_lazily(path: str | os.PathLike[str], form: TextForm = PLAIN, *, texts: Collection[str] = ()) -> Any:
    """A table larger than memory as a Dask frame.

    The columns of a text file hold what they hold in its first rows; other values below are an error.
    """
    with opened(path, form) as (file, kind):
        if kind.open is None:
            raise TableError(f"{printable(path)}: a {kind.name} is read whole: save it as Parquet to read it in parts.")
        read, places, nothing = kind.open(file, form, texts)
        frame = dask("dask.dataframe").from_map(
            read_unchanged,
            [(stamp(place[0]), place) for place in places],
            read=read,
            what=kind.name,
            texts=list(texts),
            meta=with_texts(nothing, texts),
            enforce_metadata=False,
        )
        frame.attrs = {"name": printable(path), "stamp": stamp(file)}
    return frame


@dataclass(frozen=True)
class Table:
    """Features, and the label and the id of every row if there are such columns."""

    X: FloatArray  # (n, d)
    columns: list[str]
    rows: IntArray  # (n,), numbers of the rows kept, counting from 0
    n_rows: int
    """Rows in the file."""
    labels: list[str] | None = None
    ids: list[str] | None = None


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    id: str | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    drop_missing: bool | None = False,
    sheet: str = "",
) -> Table:
    """Read a table of numbers by the ending of its name.

    ``label`` and ``id`` name columns that come as texts, ``drop`` columns to leave out. Columns that are not numbers
    are one error (``TablePreparer`` deals with them), and so is a missing or infinite value, unless ``drop_missing``
    leaves such rows out; None keeps them. Booleans are 0 and 1.

    Text files: ``header`` says whether the first line holds names; by default it does unless all of its fields are
    numbers. ``decimal`` is "." or ",". ``encoding`` is one of Python's, such as "latin-1". Excel files: ``sheet`` is
    the name of a sheet; "" is the first.
    """
    roles = [name for name in (label, id) if name is not None]
    frame = read_frame(path, TextForm(header, decimal, encoding=encoding, sheet=sheet), texts=roles)
    missing = "keep" if drop_missing is None else "drop" if drop_missing else "refuse"
    preparer = TablePreparer(drop=[*roles, *drop], missing=missing, scale="none")
    X, kept = preparer.fit(frame).transform_rows(frame)
    rows = np.flatnonzero(kept)
    labels, ids = (None if name is None else texts_of(frame[name].iloc[rows]) for name in (label, id))
    return Table(X, preparer.number_columns_, rows, len(frame), labels, ids)
