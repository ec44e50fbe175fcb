"""Exact tiles on a Dask cluster: rows travel once, a block of vectors once a pass, sums come back."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from biclique._typing import Array, FloatArray
from biclique.exceptions import DataError
from biclique.gram.spread import PairProduct
from biclique.gram.tiled import TiledGram
from biclique.rows.array import ArrayRows
from biclique.rows.dask_rows import import_dask


class GatheredRows(ArrayRows):
    """Rows of a Dask collection that came here, for an exact K whose passes the workers run."""


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
        self._held = self._put(gram)

    def add_pairs(self, product: PairProduct, V: Array, n_blocks: int) -> list[FloatArray]:
        submit = self.client.submit
        vectors = self._put(V)
        parts: list[list[Any]] = [[] for _ in range(n_blocks)]
        for i in range(n_blocks):
            for j in range(i, n_blocks):
                pair = submit(product, self._held, vectors, i, j, pure=False)
                parts[i].append(submit(itemgetter(0), pair, pure=False))
                if i != j:
                    parts[j].append(submit(itemgetter(1), pair, pure=False))
        sums = [submit(added, block, pure=False) for block in parts]
        del parts, pair
        try:
            found: list[FloatArray] = self.client.gather(sums)
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            raise DataError(
                f"a pass over K failed: every worker that took one of its tasks died ({error}). Every worker holds all "
                "rows: give workers more memory, or use gram='nystroem'."
            ) from error
        except BaseException:
            self.client.cancel(sums)
            raise
        return [np.asarray(one) for one in found]

    def _put(self, value: Any) -> Any:
        """A value of any size as one key."""
        with import_dask().config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(given, value, pure=False)
