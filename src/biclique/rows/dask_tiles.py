"""Exact tiles on a Dask cluster: rows travel once, a block of vectors once a pass, sums come back."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any
from uuid import uuid4

import numpy as np

from biclique._typing import Array, FloatArray
from biclique.exceptions import DataError
from biclique.gram.spread import PairProduct
from biclique.gram.tiled import TiledGram
from biclique.rows.dask_rows import import_dask


def given(value: Any) -> Any:
    """A task that holds what it is given: unlike scattered data it can be computed anew when a worker dies."""
    return value


def added(parts: Sequence[FloatArray]) -> FloatArray:
    """Sums in their order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


class DaskSpread:
    """Tasks over pairs of blocks of rows, by a client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._held: Any = None

    @property
    def n_threads(self) -> int:
        return max(int(sum(self.client.nthreads().values())), 1)

    def keep(self, gram: TiledGram) -> None:
        with self._large_graphs():
            self._held = self.client.submit(given, gram, pure=False)

    def add_pairs(self, product: PairProduct, V: Array, n_blocks: int) -> list[FloatArray]:
        """One graph a pass: the scheduler takes it in one message, and hands pairs to workers as they come free."""
        name = f"biclique-tiles-{uuid4().hex[:8]}"
        tasks: dict[Any, Any] = {f"{name}-vectors": (given, V)}
        halves: list[list[Any]] = [[] for _ in range(n_blocks)]
        for i in range(n_blocks):
            for j in range(i, n_blocks):
                # Pairs of a block with itself are half as long: they come last, and workers end together.
                pair = (f"{name}-pair", int(i == j), i, j)
                tasks[pair] = (product, self._held, f"{name}-vectors", i, j)
                for half, block in enumerate((i,) if i == j else (i, j)):
                    halves[block].append((f"{name}-half", half, i, j))
                    tasks[halves[block][-1]] = (itemgetter(half), pair)
        sums = [(f"{name}-sum", block) for block in range(n_blocks)]
        tasks.update({key: (added, block) for key, block in zip(sums, halves, strict=True)})
        try:
            with self._large_graphs():
                found: list[FloatArray] = self.client.get(tasks, sums)
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise DataError(
                f"a pass over K failed: every worker that took one of its tasks died ({error}). Every worker holds all "
                "rows: give workers more memory, or use gram='nystroem'."
            ) from error
        return [np.asarray(one) for one in found]

    @staticmethod
    def _large_graphs() -> Any:
        """Graphs hold the rows once, and the vectors once a pass: Dask would warn of them."""
        return import_dask().config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})
