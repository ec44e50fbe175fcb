"""S and B of a Gram operator and an order, eigenpairs, labels, and the extension to new points."""

from biclique.spectral.alternatives import scipy_eigenpairs
from biclique.spectral.assign import ASSIGNERS, LargestCoordinate, NearestCentre, Rule
from biclique.spectral.cut import NormalizedCut, check_order, shrunken_degrees
from biclique.spectral.extend import Extension
from biclique.spectral.solver import (
    BASIS_BLOCKS,
    FEWEST_BLOCKS,
    EigenResult,
    basis_bytes,
    block_columns,
    solves_directly,
    top_eigenpairs,
)

__all__ = [
    "ASSIGNERS",
    "BASIS_BLOCKS",
    "FEWEST_BLOCKS",
    "EigenResult",
    "Extension",
    "LargestCoordinate",
    "NearestCentre",
    "NormalizedCut",
    "Rule",
    "basis_bytes",
    "block_columns",
    "check_order",
    "scipy_eigenpairs",
    "shrunken_degrees",
    "solves_directly",
    "top_eigenpairs",
]
