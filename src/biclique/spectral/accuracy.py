"""How far an approximate K is from the exact one, seen on a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DegreeError
from biclique.features.maps import FeatureMap
from biclique.gram import DenseGram
from biclique.kernels import Kernel
from biclique.rows.array import ArrayRows
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.small_problem import factored_spectrum
from biclique.spectral.solver import top_eigenpairs


@dataclass(frozen=True)
class ApproximationError:
    """Errors of a factored K̂ against the exact K of the same sample of rows."""

    eigenvalues: float
    """max_i |λ̂_i − λ_i| / λ_1 over the eigenvalues of B that are used, λ̂ as a fit of the sample computes them.

    NaN if the exact K of the sample has no cut. If only K̂ has none, every λ̂ counts as 0.
    """
    kernel: float
    """|K̂ − K| / |K|, Frobenius norms."""
    n_rows: int
    """Rows of the sample."""
    counts_as_exact: bool = False

    def __str__(self) -> str:
        return (
            f"eigenvalues within {self.eigenvalues:.1e} of the exact ones and kernel values within {self.kernel:.1e}, "
            f"on a sample of {self.n_rows} rows"
        )


class ExactSample:
    """The exact K of a sample, and the leading eigenvalues of its cut: what approximations are compared with."""

    def __init__(
        self, kernel: Kernel, rows: Rows, weights: FloatArray, order: float, k: int, random: np.random.RandomState
    ) -> None:
        self.rows, self.weights, self.order = rows, weights, order
        self.k = min(k, rows.shape[0] - 1)
        block = np.asarray(kernel.block(rows, rows), dtype=np.float64)
        self.K: FloatArray = (block + block.T) / 2
        self._seed = int(random.randint(2**31))
        self.eigenvalues = self._eigenvalues(self.K)

    def error(self, feature_map: FeatureMap) -> ApproximationError:
        """The errors of ΦΦᵀ."""
        features = feature_map.features(self.rows)
        approximate = features @ features.T
        found = self._factored_eigenvalues(feature_map)
        gap = float("nan")
        if self.eigenvalues is not None:
            largest = float(self.eigenvalues.max(initial=0.0))
            gap = float(np.abs(found - self.eigenvalues).max(initial=0.0)) / largest if largest > 0 else 0.0
        unit = float(np.abs(self.K).max(initial=0.0)) or 1.0  # squares of tiny values would vanish
        size = float(np.linalg.norm(self.K / unit)) or 1.0  # of a kernel that vanishes, the error itself
        relative = float(np.linalg.norm((approximate - self.K) / unit)) / size
        return ApproximationError(gap, relative, len(self.K))

    def _factored_eigenvalues(self, feature_map: FeatureMap) -> FloatArray:
        """Those of a fit of the sample: the same sums in the same precision, so that their rounding counts too."""
        length = float(np.sqrt(np.abs(np.diagonal(self.K)).mean()))
        try:
            source = ArrayRows(self.rows, self.weights)
            found = factored_spectrum(feature_map, source, self.order, self.k, length=length).values
        except DegreeError:
            found = np.empty(0)
        return np.pad(found, (0, self.k - len(found)))

    def _eigenvalues(self, K: FloatArray) -> FloatArray | None:
        if self.k < 1:
            return np.empty(0)
        try:
            cut = NormalizedCut(DenseGram(K), self.order, self.weights)
        except DegreeError:
            return None
        return top_eigenpairs(cut, self.k, tol=1e-4, deflate=cut.trivial, random_state=self._seed).values
