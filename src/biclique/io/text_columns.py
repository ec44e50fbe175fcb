"""Every column of a text file with its kind: whole, or in chunks after one pass that settles the kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique.io.chunks import Stamp, check_table_size, stamp, written_again
from biclique.io.csv_files import joined_lines
from biclique.io.fields import Kind, joined
from biclique.io.text_blocks import Block, TextFile
from biclique.io.typed_columns import Column, TextForm, TypedTable, check_names
from biclique.runtime import Tick

Kinds = dict[int, Kind | None]


def read_text_columns(file: Path, form: TextForm, limit: int, tick: Tick | None = None) -> TypedTable:
    """The whole table: one pass, and another over columns that turned out to be text late."""
    text = TextFile(file, form, limit)
    check_names(text.name, text.names)
    kinds: Kinds = dict.fromkeys(range(text.width))
    blocks: list[Block] = []
    n = 0
    for block in text.blocks(kinds):
        n += len(block)
        _settle(kinds, block)
        texts = sum(kind == "text" for kind in kinds.values())
        rows = max(n, round(n / block.share)) if len(block) > 1 else n
        check_table_size(text.name, rows, text.width - texts, 1 + texts, limit)
        blocks.append(block.without_text())
        if tick is not None:
            tick(block.share)
    late: Kinds = {
        j: kind for j, kind in kinds.items() if kind == "text" and any(block.kinds[j] != "text" for block in blocks)
    }
    again = [block.without_text() for block in text.blocks(late)] if late else []
    columns = [
        _column(name, kinds[j] or "number", [block.values[j] for block in (again if j in late else blocks)])
        for j, name in enumerate(text.names)
    ]
    if not n:
        raise text.no_rows()
    return TypedTable(text.name, tuple(columns), n, lines=joined_lines([block.lines for block in blocks]))


def _settle(kinds: Kinds, block: Block) -> None:
    for j in kinds:
        kinds[j] = joined(kinds[j], block.kinds[j])


def _column(name: str, kind: Kind, parts: list[NDArray[Any]]) -> Column:
    if kind == "date":  # a part without any date was read as numbers, all of them missing
        parts = [np.full(len(part), "NaT", "datetime64[us]") if part.dtype.kind == "f" else part for part in parts]
    return Column(name, kind, np.concatenate(parts) if parts else np.empty(0))


class TextColumns:
    """A text file to be passed over in chunks. Opening it takes a pass: kinds and the number of rows are known then."""

    def __init__(self, file: Path, form: TextForm, limit: int, tick: Tick | None = None) -> None:
        self._stamp: Stamp = stamp(file)
        self._text = TextFile(file, form, limit)
        self.name = self._text.name
        check_names(self.name, self._text.names)
        kinds: Kinds = dict.fromkeys(range(self._text.width))
        self.n_rows = 0
        for block in self._text.blocks(kinds):
            _settle(kinds, block)
            self.n_rows += len(block)
            if tick is not None:
                tick(block.share)
        if not self.n_rows:
            raise self._text.no_rows()
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
