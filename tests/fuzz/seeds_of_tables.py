"""Tables: CSV, TSV, .npy, .npz, Parquet and Zarr."""

from __future__ import annotations

from biclique.io import read_table
from tests.fuzz.campaign import Reader
from tests.fuzz.mutate import Files


def texts() -> list[Files]:
    plain = "x,y,kind\n" + "".join(f"{i},{i * 0.5},{'ab'[i % 2]}\n" for i in range(40))
    quoted = '"long name";"a;b"\n' + "".join(f'"{i}";{i / 3}\n' for i in range(20))
    return [{"": plain.encode()}, {"": quoted.encode()}, {"": b"1,2\n3,4\n"}]


READERS = {"csv": Reader(texts, read_table, "table.csv")}
