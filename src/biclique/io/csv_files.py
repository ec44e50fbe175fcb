"""Text files of fields between commas, semicolons, tabs or bars: whole, in chunks, columns of any kind; labels out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import TableError
from biclique.io.chunks import FileChunks, Raw, check_table_size, guard, stamp, written_again
from biclique.io.fields import THOUSANDS, Kind, TextForm, as_boolean, as_number, joined
from biclique.io.roles import A_ROLE, Roles, Table, check_names, feature_columns
from biclique.io.text_blocks import Block, TextFile
from biclique.io.typed_columns import DECIMAL, Column, TypedTable
from biclique.runtime import Tick

TEXT_ROWS = 65_536  # lines of text that are made at once

Kinds = dict[int, Kind | None]


class TextChunks(FileChunks):
    """The feature columns of a text file as float64, a block of lines at a time; booleans are 0 and 1.

    A column is a feature if all of its fields are numbers, or all are booleans, whichever block they are in. The
    number of rows takes a pass over the line ends, which is made when somebody asks for it.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self, path: Path, roles: Roles, memory_limit: object, form: TextForm | None = None, tick: Tick | None = None
    ) -> None:
        super().__init__(path, memory_limit)
        self._tick = tick
        with guard(self.name):
            self._text = TextFile(path, form or TextForm(), self.memory_limit)
        self.notes = self._text.notes
        self._places = feature_columns(self.name, self._text.names, roles)
        self.columns = [self._text.names[j] for j in self._places]
        self.n_columns = len(self.columns)
        if self.n_columns == 0:
            raise TableError(f"{self.name}: no feature columns are left; drop fewer columns.")

    @property
    def n_rows(self) -> int | None:
        """The number of rows."""
        if self._n_rows is None:
            with guard(self.name):
                self._check_same(stamp(self._path, self._stamp))
                self._n_rows = self._text.count_rows(self._tick)
            self._check_rows()
        return self._n_rows

    @property
    def held_bytes(self) -> int:
        """About what the features would take in memory, from the first lines of the file."""
        with guard(self.name):
            return 8 * self.n_columns * (self._n_rows or self._text.estimate_rows())

    def texts(self, name: str) -> Iterator[list[str]]:
        """One fresh pass over any column of the file, as texts."""
        place = self._text.names.index(name)
        for block in self._blocks({place: "text"}):
            yield block.values[place].tolist()

    def _blocks(self, kinds: Kinds) -> Iterator[Block]:
        with guard(self.name):
            self._check_same(stamp(self._path, self._stamp))
            yield from self._text.blocks(kinds)

    def _pieces(self, rows: int) -> Iterator[Raw]:
        self._check_memory(min(rows, self._n_rows or rows), 8 * self.n_columns)
        kinds: Kinds = dict.fromkeys(self._places)
        for block in self._blocks(kinds):
            yield _features(self._text, block, self._places, kinds)

    def _sample(self, size: int, random: np.random.RandomState) -> tuple[FloatArray, IntArray]:
        """By the number of rows: the same draw as from the same rows in another kind of file."""
        if self.n_rows is None:
            raise self._text.no_rows()
        return super()._sample(size, random)


def _features(text: TextFile, block: Block, places: Sequence[int], kinds: Kinds) -> FloatArray:
    """The rows of these columns; ``kinds`` gets what they hold. A field that is no number is refused.

    They lie in memory column by column, for one copy into rows: it is faster than a copy of each column.
    """
    for j in places:
        kind = joined(kinds[j], block.kinds[j])
        if kind not in (None, "number", "boolean"):
            raise _not_a_number(text, block, j, kinds[j])
        kinds[j] = kind
    return np.array([block.values[j] for j in places], dtype=float).reshape(len(places), len(block)).T


def _not_a_number(text: TextFile, block: Block, place: int, kind: Kind | None) -> TableError:
    """The first field that is not a number; in a column of booleans, the first that is not a boolean."""
    fields, decimal = block.fields(place), text.form.decimal
    read = as_boolean if kind == "boolean" else lambda field: as_number(field, decimal)
    at = next(i for i, field in enumerate(fields) if read(field) is None)
    field = fields[at]
    shown = repr(field[:100]) + ("…" if len(field) > 100 else "")
    where = f"{text.name}: row {block.first_row + at + 1} (line {block.lines[at]}), column {text.names[place]!r}"
    what = "true or false, as the fields before" if kind == "boolean" else "a number"
    if decimal == "." and THOUSANDS.fullmatch(field.strip()):
        return TableError(
            f"{where}: {shown} is not {what}. If it has thousands separators, write it without; if it has a decimal "
            "comma, say so with ",
            DECIMAL,
            ".",
        )
    if decimal == "," and as_number(field) is not None:
        return TableError(
            f"{where}: {shown} is not {what}. It has a point, which may mean thousands: write 1500 or 1,5."
        )
    if decimal == "." and "," in field and as_number(field, ",") is not None:
        return TableError(f"{where}: {shown} is not {what}. If it has a decimal comma, say so with ", DECIMAL, ".")
    return TableError(
        f"{where}: {shown} is not {what}. If the column holds classes or names, say so with ", *A_ROLE, "."
    )


def read_text(file: Path, roles: Roles, limit: int, form: TextForm, tick: Tick | None = None) -> Table:
    """The table of a text file, in one pass."""
    text = TextFile(file, form, limit)
    places = feature_columns(text.name, text.names, roles)
    label, key = (None if name is None else text.names.index(name) for name in (roles.label, roles.id))
    with_role = [j for j in (label, key) if j is not None]
    kinds: Kinds = {**dict.fromkeys(places), **dict.fromkeys(with_role, "text")}
    X: FloatArray = np.empty((0, len(places)))
    texts: dict[int, list[str]] = {j: [] for j in with_role}
    lines: list[Sequence[int]] = []
    n = 0
    for block in text.blocks(kinds):
        start, n = n, n + len(block)
        rows = _estimate(n, block)
        check_table_size(text.name, rows, len(places), 1 + len(with_role), limit)
        if n > len(X):
            X = _with_room(X, start, rows + rows // 16)
        X[start:n] = _features(text, block, places, kinds)
        lines.append(block.lines)
        for j, found in texts.items():
            found += block.values[j].tolist()
        if tick is not None:
            tick(block.share)
    X.resize((n, len(places)), refcheck=False)  # gives the rest of its memory back; nobody else has X
    return Table(
        text.name,
        X,
        [text.names[j] for j in places],
        np.arange(n),
        n,
        None if label is None else texts[label],
        None if key is None else texts[key],
        joined_lines(lines),
        notes=text.notes,
    )


def _estimate(n: int, block: Block) -> int:
    """About how many rows the file has, n of which were read by the end of a block."""
    return max(n, round(n / block.share)) if len(block) > 1 else n


def _with_room(X: FloatArray, used: int, rows: int) -> FloatArray:
    """The rows of X that are used, with room for more. What is not written yet takes no memory."""
    wider = np.empty((rows, X.shape[1]))
    wider[:used] = X[:used]
    return wider


def joined_lines(parts: Sequence[Sequence[int]]) -> Sequence[int]:
    """The lines of consecutive blocks: a range if they are one."""
    total = sum(map(len, parts))
    if total and parts[-1][-1] - parts[0][0] + 1 == total:
        return range(parts[0][0], parts[-1][-1] + 1)
    return [number for part in parts for number in part]


# Every column with its kind: whole, or in chunks after one pass that settles the kinds


def _settling(text: TextFile, kinds: Kinds, tick: Tick | None) -> Iterator[Block]:
    """One pass, after which ``kinds`` has what every column holds."""
    check_names(text.name, text.names)
    kinds.update(dict.fromkeys(range(text.width)))
    n = 0
    for block in text.blocks(kinds):
        kinds.update({j: joined(kind, block.kinds[j]) for j, kind in kinds.items()})
        n += len(block)
        yield block
        if tick is not None:
            tick(block.share)
    if not n:
        raise text.no_rows()


def read_text_columns(file: Path, form: TextForm, limit: int, tick: Tick | None = None) -> TypedTable:
    """The whole table: one pass, and another over columns that turned out to be text late."""
    text, kinds = TextFile(file, form, limit), Kinds()
    blocks: list[Block] = []
    n = 0
    for block in _settling(text, kinds, tick):
        n += len(block)
        texts = sum(kind == "text" for kind in kinds.values())
        check_table_size(text.name, _estimate(n, block), text.width - texts, 1 + texts, limit)
        blocks.append(block.without_text())
    late: Kinds = {
        j: kind for j, kind in kinds.items() if kind == "text" and any(block.kinds[j] != "text" for block in blocks)
    }
    again = [block.without_text() for block in text.blocks(late)] if late else []
    columns = [
        _column(name, kinds[j] or "number", [block.values[j] for block in (again if j in late else blocks)])
        for j, name in enumerate(text.names)
    ]
    return TypedTable(text.name, tuple(columns), n, lines=joined_lines([block.lines for block in blocks]))


def _column(name: str, kind: Kind, parts: list[NDArray[Any]]) -> Column:
    if kind == "date":  # a part without any date was read as numbers, all of them missing
        parts = [np.full(len(part), "NaT", "datetime64[us]") if part.dtype.kind == "f" else part for part in parts]
    return Column(name, kind, np.concatenate(parts))


class TextColumns:
    """A text file to be passed over in chunks. Opening it takes a pass: kinds and the number of rows are known then."""

    def __init__(self, file: Path, form: TextForm, limit: int, tick: Tick | None = None) -> None:
        self._stamp, self._text, kinds = stamp(file), TextFile(file, form, limit), Kinds()
        self.name = self._text.name
        self.n_rows = sum(map(len, _settling(self._text, kinds, tick)))
        self._settled: dict[int, Kind] = {j: kind or "number" for j, kind in kinds.items()}

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each column holds, by its name."""
        return dict(zip(self._text.names, self._settled.values(), strict=True))

    def column_chunks(self, rows: int) -> Iterator[TypedTable]:
        """One fresh pass over tables of at most ``rows`` rows."""
        if not self._stamp.same_file(stamp(self._text.path, self._stamp)):
            raise written_again(self.name)
        for block in self._text.blocks(self._settled):
            if any(block.kinds[j] not in (kind, None) for j, kind in self._settled.items()):
                raise written_again(self.name)
            columns = [Column(name, self._settled[j], block.values[j]) for j, name in enumerate(self._text.names)]
            whole = TypedTable(self.name, tuple(columns), len(block), block.first_row, block.lines)
            yield from whole.column_chunks(rows)


# Labels


class TextSink:
    """Lines of an id and a label."""

    with_ids = True

    def __init__(self, path: Path, names: tuple[str, str], delimiter: str = ",") -> None:
        self._delimiter = delimiter
        self._file = path.open("wb", buffering=0)
        try:
            self._put(self._quoted([names]))
        except BaseException:
            self._file.close()
            raise

    def write(
        self, keys: NDArray[Any] | list[str], labels: NDArray[Any], kept: NDArray[np.bool_] | None = None
    ) -> None:
        for start in range(0, len(labels), TEXT_ROWS):
            some, values = keys[start : start + TEXT_ROWS], labels[start : start + TEXT_ROWS]
            inside = None if kept is None else kept[start : start + TEXT_ROWS]
            if isinstance(some, np.ndarray):
                self._put(_number_lines(some, values, self._delimiter, inside))
                continue
            shown = values.tolist()
            if inside is not None:
                shown = [value if stays else "" for value, stays in zip(shown, inside, strict=True)]
            self._put(self._quoted(zip(some, shown, strict=True)))

    def _quoted(self, rows: Iterable[tuple[object, object]]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue().encode("utf-8")

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while len(view):
            view = view[self._file.write(view) :]

    def close(self, *_: object) -> None:
        self._file.close()


def _number_lines(
    keys: NDArray[Any], labels: NDArray[Any], delimiter: str, kept: NDArray[np.bool_] | None = None
) -> bytes:
    """Lines of two whole numbers: characters in a table with one row a line, less those that only align.

    The label of a row that is not kept is empty.
    """
    tables = [_digits(keys), _digits(labels)]
    if kept is not None:
        tables[1][~kept] = 0
    width = sum(table.shape[1] for table in tables) + 2
    lines = np.empty((len(keys), width), dtype=np.uint8)
    at = 0
    for table, end in zip(tables, (delimiter, "\n"), strict=True):
        lines[:, at : at + table.shape[1]] = table
        at += table.shape[1] + 1
        lines[:, at - 1] = ord(end)
    shown = lines != 0
    return lines.tobytes() if shown.all() else lines[shown].tobytes()


def _digits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Whole numbers in ASCII, one for each row, the last digits below each other; 0 stands for nothing.

    A minus sign stands in a column of its own in front.
    """
    negative = values < 0
    rest = np.abs(values.astype(np.int64)).astype(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    top = int(rest.max(initial=0))
    rest = rest.astype(np.uint32) if top < 2**32 else rest
    width = len(str(top))
    signed = bool(negative.any())
    table = np.zeros((len(values), width + signed), dtype=np.uint8)
    for j in range(width - 1, -1, -1):
        shorter = rest // 10
        digit = (rest - shorter * 10).astype(np.uint8) + ord("0")
        table[:, j + signed] = digit if j == width - 1 else np.where(rest > 0, digit, 0)
        rest = shorter
    if signed:
        table[:, 0] = np.where(negative, ord("-"), 0)
    return table
