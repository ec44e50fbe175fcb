"""Exact tiles on a Dask cluster: rows travel once, a block of vectors once a pass, sums come back."""

from __future__ import annotations

from typing import Any

from biclique._typing import Array, FloatArray
from biclique.exceptions import DataError
from biclique.gram.spread import PairProduct
from biclique.gram.tiled import TiledGram
from biclique.rows.dask_client import import_dask


class DaskSpread:
    """Tasks over pairs of blocks of rows."""

    def __init__(self) -> None:
        self.dask = import_dask()
        self._gram: Any = None

    def keep(self, gram: TiledGram) -> None:
        with self._large_graphs():
            self._gram = self._task(gram).persist()

    def add_pairs(self, product: PairProduct, V: Array, n_blocks: int) -> list[FloatArray]:
        vectors = self._task(V)
        parts: list[list[Any]] = [[] for _ in range(n_blocks)]
        for i in range(n_blocks):
            for j in range(i, n_blocks):
                pair = self._task(product, nout=2)(self._gram, vectors, i, j)
                parts[i].append(pair[0])
                if i < j:
                    parts[j].append(pair[1])
        sums = [self._task(sum)(part) for part in parts]
        try:
            with self._large_graphs():
                return list(self.dask.compute(*sums))
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise DataError(
                f"a pass over K failed: every worker that took one of its tasks died ({error}). Every worker holds all "
                "rows: give workers more memory, or use gram='nystroem'."
            ) from error

    def _task(self, value: Any, nout: int | None = None) -> Any:
        """A task that calls a function or holds a value: unlike scattered data it can be made anew if a worker dies."""
        return self.dask.delayed(value, pure=False, traverse=False, nout=nout)

    def _large_graphs(self) -> Any:
        """Graphs hold the rows once, and the vectors once a pass: Dask would warn of them."""
        return self.dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})
