"""pyarrow: its columns as ours, and its parser of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique.exceptions import MissingExtraError, optional
from biclique.io.fields import BOOLEANS, MISSING, Kind, TextForm, text_array, values_of


def import_pyarrow() -> Any:
    """pyarrow with its readers, or the line that installs it."""
    needed = "Parquet files need pyarrow: pip install 'biclique[io]'"
    for reader in ("pyarrow.csv", "pyarrow.parquet"):
        optional(reader, needed)
    return optional("pyarrow", needed)


def find_pyarrow() -> Any:
    """pyarrow, or None if it is not installed."""
    try:
        return import_pyarrow()
    except MissingExtraError:
        return None


def _ways(words: Iterable[str]) -> list[str]:
    """Words as most people write them. Python reads the blocks that write them otherwise."""
    return [way(word) for word in words for way in (str.lower, str.upper, str.title)]


NULLS = [*_ways(MISSING), "NaN"]


def parse_block(
    pyarrow: Any,
    block: bytes,
    n_rows: int,
    delimiter: str,
    form: TextForm,
    width: int,
    kinds: Mapping[int, Kind | None],
) -> dict[int, NDArray[Any]] | None:
    """The values of some columns of lines of text, by their places; None if Python has to look at the lines."""
    csv = pyarrow.csv
    types = {"boolean": pyarrow.bool_(), "date": pyarrow.string(), "text": pyarrow.string()}
    names = [str(j) for j in range(width)]
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(block),
            read_options=csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=csv.ConvertOptions(
                column_types={str(j): types.get(kind or "", pyarrow.float64()) for j, kind in kinds.items()},
                include_columns=[str(j) for j in kinds],
                null_values=NULLS,
                true_values=_ways(word for word in BOOLEANS if BOOLEANS[word]),
                false_values=_ways(word for word in BOOLEANS if not BOOLEANS[word]),
                decimal_point=form.decimal,
            ),
        )
        if table.num_rows != n_rows:
            return None
        values = {j: _values(pyarrow, table.column(i), kind, form) for i, (j, kind) in enumerate(kinds.items())}
    except (pyarrow.ArrowException, UnicodeDecodeError):
        return None
    found = {j: column for j, column in values.items() if column is not None}
    return found if len(found) == len(values) else None


def _values(pyarrow: Any, column: Any, kind: Kind | None, form: TextForm) -> NDArray[Any] | None:
    if kind in ("text", "date"):
        return _texts(column, kind, form)
    values = np.asarray((column.cast(pyarrow.float64()) if kind == "boolean" else column).to_numpy())
    # A field such as nan(1) is NaN without being missing: pyarrow takes it for a number, and Python does not.
    return None if np.count_nonzero(values != values) != column.null_count else values


def _texts(column: Any, kind: Kind, form: TextForm) -> NDArray[Any] | None:
    """Texts or dates: each distinct text is made once."""
    encoded = column.combine_chunks().dictionary_encode()
    if hasattr(encoded, "chunks"):
        encoded = encoded.combine_chunks() if encoded.num_chunks != 1 else encoded.chunk(0)
    texts = encoded.dictionary.to_pylist()
    known = values_of(texts, kind, form)
    if isinstance(known, int):
        return None
    return np.asarray(known[encoded.indices.to_numpy()] if texts else text_array([]))
