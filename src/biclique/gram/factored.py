"""K = ΦΦᵀ, of low rank: two passes over the rows a product, nothing of size n × p kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.features.maps import FeatureMap, column_sums, map_product, squared_lengths
from biclique.gram.operator import CrossGram, GramOperator
from biclique.runtime.threads import Tick


class FactoredRows:
    """Training rows as a factored K holds them."""

    def __init__(self, feature_map: FeatureMap, X: Rows) -> None:
        self.map, self.rows = feature_map, X

    def hold(self, Y: Rows) -> Rows:
        """Other rows, as these are: as they came."""
        return Y

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        """⟨φ(y), φ(x)⟩ of new rows against these."""
        return FactoredCross(self, Y, n_jobs=n_jobs)

    def product(self, Y: Rows, V: FloatArray, *, n_jobs: int | None = None, tick: Tick | None = None) -> FloatArray:
        """φ(Y)ΦᵀV, shape (n_new, b)."""
        sums = self.map.project(column_sums(self.map, self.rows, V, n_jobs=n_jobs, tick=tick))
        return map_product(self.map, Y, self.map.lift(sums), n_jobs=n_jobs)


class FactoredGram(GramOperator):
    """K = ΦΦᵀ for the rows of a feature map, never stored."""

    def __init__(
        self, feature_map: FeatureMap, X: Rows, *, n_jobs: int | None = None, tick: Tick | None = None
    ) -> None:
        self.name, self.dtype = feature_map.name, feature_map.dtype
        self.noise = float(np.finfo(self.dtype).eps)
        self.map, self.n, self.n_jobs, self.tick = feature_map, X.shape[0], n_jobs, tick
        self.held = FactoredRows(feature_map, X)

    def matmat(self, V: FloatArray) -> FloatArray:
        return self.held.product(self.held.rows, V, n_jobs=self.n_jobs, tick=self.tick)

    def diagonal(self) -> FloatArray:
        return squared_lengths(self.map, self.held.rows, n_jobs=self.n_jobs)

    def sparse_factor(self) -> Any | None:
        return self.map.columns(self.held.rows) if self.map.is_sparse else None

    def training(self) -> FactoredRows:
        return self.held

    def cross(self, Y: Rows) -> CrossGram:
        return self.held.cross(Y, n_jobs=self.n_jobs)


class FactoredCross(CrossGram):
    """⟨φ(y), φ(x)⟩ of new rows against the training rows."""

    def __init__(self, held: FactoredRows, Y: Rows, *, n_jobs: int | None = None) -> None:
        self.held, self.rows, self.n_jobs = held, Y, n_jobs

    def matmat(self, V: FloatArray) -> FloatArray:
        return self.held.product(self.rows, V, n_jobs=self.n_jobs)

    def diagonal(self) -> FloatArray:
        return squared_lengths(self.held.map, self.rows, n_jobs=self.n_jobs)
