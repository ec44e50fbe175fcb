"""S and B of a Gram operator and an order, eigenpairs, labels, and the extension to new points."""

from biclique.spectral.alternatives import scipy_eigenpairs
from biclique.spectral.assign import (
    ASSIGNERS,
    Assignment,
    LargestCoordinate,
    NearestCentre,
    Parts,
    assign_sampled,
    device_kmeans,
    one_each,
)
from biclique.spectral.cut import Extension, NormalizedCut
from biclique.spectral.joining import PartedPairs, part_vectors, parted_eigenpairs, parted_rotation
from biclique.spectral.lloyd import KernelKMeansProblem, KernelRule, kernel_kmeans, plus_plus_start, random_start
from biclique.spectral.multigrid import graph_eigenpairs
from biclique.spectral.solver import (
    BASIS_BLOCKS,
    DIRECT_BELOW,
    FEWEST_BLOCKS,
    EigenResult,
    GiveUp,
    Progressing,
    basis_bytes,
    block_columns,
    blocks_within,
    direct_bytes,
    solves_directly,
    top_eigenpairs,
)
from biclique.spectral.start import start_from_few

__all__ = [
    "ASSIGNERS",
    "BASIS_BLOCKS",
    "DIRECT_BELOW",
    "FEWEST_BLOCKS",
    "Assignment",
    "EigenResult",
    "Extension",
    "GiveUp",
    "KernelKMeansProblem",
    "KernelRule",
    "LargestCoordinate",
    "NearestCentre",
    "NormalizedCut",
    "PartedPairs",
    "Parts",
    "Progressing",
    "assign_sampled",
    "basis_bytes",
    "block_columns",
    "blocks_within",
    "device_kmeans",
    "direct_bytes",
    "graph_eigenpairs",
    "kernel_kmeans",
    "one_each",
    "part_vectors",
    "parted_eigenpairs",
    "parted_rotation",
    "plus_plus_start",
    "random_start",
    "scipy_eigenpairs",
    "solves_directly",
    "start_from_few",
    "top_eigenpairs",
]
