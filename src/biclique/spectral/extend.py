"""The embedding of rows that were not there: closed form, no eigenproblem."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from biclique._typing import FloatArray
from biclique.exceptions import DegreeError
from biclique.gram import CrossGram
from biclique.multiway import shrunken_degrees
from biclique.runtime.namespace import float64, moved, namespace, scalars, to_host
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import EigenResult

NULL_EIGENVALUE = 100
"""Eigenvalues below this many times the rounding of a product have no direction of their own."""


@dataclass(frozen=True)
class Extension:
    """The embedding as a function of a point.

    With u = v/√(wS) and δ(x) = Σ_j w_j κ(x, x_j), S(x) = (2/m) δ(x) + (1 − 2/m) δ̄,

        v(x) = [Σ_j w_j κ(x, x_j) u_j − δ(x) Σ_j w_j δ_j u_j / ρ] / (λ √S(x)),

    and the trivial column is √(S(x) / Σ_j w_j S_j). At a training row this is its row of the embedding.

    The coefficients lie where the cut's arrays do, and take a ``CrossGram`` of that kind; the rest is on the host.
    """

    order: float
    mean_degree: float
    volume: float
    values: FloatArray  # λ, (k,)
    informative: np.ndarray  # which λ are not null, (k,)
    coefficients: FloatArray  # [w, w u], (n, 1 + k)
    shift: FloatArray  # Σ_j w_j δ_j u_j / ρ, (k,)
    signs: FloatArray  # (k,)
    faint: float
    """A new row with a degree of no more is like no training row at all."""

    @classmethod
    def fit(cls, cut: NormalizedCut, pairs: EigenResult, noise: float) -> tuple[Extension, FloatArray]:
        """The extension of eigenpairs of a cut, and the embedding (n, 1 + k) of its rows.

        The rows of the embedding are v_i/√w_i. v is taken one step further, to B v/λ, whose product is at
        hand: that is what the closed form gives at a training row even before v has converged fully.
        """
        weights = cut.weights
        xp = namespace(weights)
        root = xp.sqrt(weights)[:, None]
        u = pairs.vectors / xp.sqrt(weights * cut.shrunken)[:, None]
        # The trivial eigenvalue, 1, sets the scale of the rounding.
        informative = np.abs(pairs.values) > NULL_EIGENVALUE * noise
        safe = np.where(informative, pairs.values, 1.0)
        rows = xp.where(moved(informative, weights), pairs.images / root / moved(safe, weights), 0.0)
        signs = column_signs(rows, weights)
        extension = cls(
            order=cut.order,
            mean_degree=cut.mean_degree,
            volume=cut.volume,
            values=pairs.values,
            informative=informative,
            coefficients=xp.column_stack([weights, weights[:, None] * u]),
            shift=to_host((weights * cut.degrees) @ u / cut.total),
            signs=signs,
            faint=cut.faint,
        )
        trivial = xp.sqrt(cut.shrunken / cut.volume)
        return extension, xp.column_stack([trivial, rows * moved(signs, weights)])

    def to_host(self) -> Extension:
        """The same with its coefficients on the host, for a ``CrossGram`` there."""
        return replace(self, coefficients=to_host(self.coefficients))

    def embed(self, cross: CrossGram) -> FloatArray:
        """The embedding of new rows, shape (n_new, 1 + k)."""
        return self.embed_seen(cross)[0]

    def embed_seen(self, cross: CrossGram) -> tuple[FloatArray, np.ndarray]:
        """The embedding of new rows, and, on the host, which of them are like any training row."""
        product = float64(cross.matmat(self.coefficients))
        xp = namespace(product)
        degrees = product[:, 0]
        shrunken = shrunken_degrees(degrees, self.mean_degree, self.order)
        # A point that no training row sees has S(x) = 0 at order 2, and all its coordinates tend to zero.
        if scalars((shrunken < 0).any())[0]:
            shrunken = to_host(shrunken)
            bad = np.flatnonzero(shrunken < 0)
            raise DegreeError(
                f"{len(bad)} of {len(shrunken)} new rows have a negative degree (first: row {bad[0]}, "
                f"{shrunken[bad[0]]:.3g}): they are unlike every training row under this kernel; shift them as the "
                "training data were, or use affinity='rbf'."
            )
        numerator = product[:, 1:] - degrees[:, None] * moved(self.shift, product)
        values = moved(np.where(self.informative, self.values, 0.0), product)
        denominator = xp.sqrt(shrunken)[:, None] * values
        seen = denominator != 0  # neither a point without a degree nor a null eigenvalue has a coordinate
        coordinates = xp.where(seen, numerator / xp.where(seen, denominator, 1.0), 0.0)
        embedding = xp.column_stack([xp.sqrt(shrunken / self.volume), coordinates * moved(self.signs, product)])
        return embedding, np.abs(to_host(degrees)) > self.faint


def column_signs(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """±1 for every column so that Σ w v³ > 0; by its largest entry where that sum vanishes. On the host."""
    xp = namespace(rows)
    skew = weights @ rows**3
    size = weights @ xp.abs(rows) ** 3
    largest = xp.diagonal(rows[xp.argmax(xp.abs(rows), axis=0)]) if len(rows) else skew
    decisive = xp.where(xp.abs(skew) > 1e-6 * size, skew, largest)
    return np.where(to_host(decisive) < 0, -1.0, 1.0)
