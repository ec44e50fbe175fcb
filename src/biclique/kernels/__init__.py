"""κ(x, y): named kernels, and a user's own."""

from biclique.kernels.gower import Columns, Gower
from biclique.kernels.kernel import InnerProductKernel, Kernel
from biclique.kernels.named import (
    KERNELS,
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Function,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)

__all__ = [
    "KERNELS",
    "RBF",
    "AdditiveChi2",
    "Chi2",
    "Columns",
    "Cosine",
    "Function",
    "Gower",
    "InnerProductKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Sigmoid",
]
