"""K = ΦΦᵀ, of low rank: two passes over the rows a product, nothing of size n × p kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.features.maps import FeatureMap, column_sums, map_product, squared_lengths
from biclique.gram.operator import Cross, CrossGram, GramOperator
from biclique.runtime.threads import Tick


class FactoredGram(GramOperator):
    """K = ΦΦᵀ for the rows of a feature map, never stored; the map and the rows are what a model keeps."""

    def __init__(
        self, feature_map: FeatureMap, X: Rows, *, n_jobs: int | None = None, tick: Tick | None = None
    ) -> None:
        self.name, self.dtype = feature_map.name, feature_map.dtype
        self.noise = float(np.finfo(self.dtype).eps)
        self.map, self.rows, self.n, self.n_jobs, self.tick = feature_map, X, X.shape[0], n_jobs, tick

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tick": None}

    def matmat(self, V: FloatArray) -> FloatArray:
        return self._product(self.rows, V, self.n_jobs, self.tick)

    def diagonal(self) -> FloatArray:
        return squared_lengths(self.map, self.rows, n_jobs=self.n_jobs)

    def sparse_factor(self) -> Any | None:
        return self.map.columns(self.rows) if self.map.is_sparse else None

    def training(self) -> FactoredGram:
        return self

    def hold(self, Y: Rows) -> Rows:
        """Other rows, as these are: as they came."""
        return Y

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        """⟨φ(y), φ(x)⟩ of new rows against these."""
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        return Cross(lambda V: self._product(Y, V, n_jobs), lambda: squared_lengths(self.map, Y, n_jobs=n_jobs))

    def _product(self, Y: Rows, V: FloatArray, n_jobs: int | None, tick: Tick | None = None) -> FloatArray:
        """φ(Y)ΦᵀV, shape (n_new, b)."""
        sums = self.map.project(column_sums(self.map, self.rows, V, n_jobs=n_jobs, tick=tick))
        return map_product(self.map, Y, self.map.lift(sums), n_jobs=n_jobs)
