"""κ(x, y): named kernels, a user's own, and the bandwidth rule."""

from biclique.kernels.bandwidth import GAMMA_RULES, bandwidth
from biclique.kernels.kernel import Form, InnerProductKernel, Kernel, dense_product, middle
from biclique.kernels.named import (
    GAMMA_KERNELS,
    KERNEL_NAMES,
    KERNELS,
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    DirectRBF,
    Function,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    check_rows_for_kernel,
    make_kernel,
)

__all__ = [
    "GAMMA_KERNELS",
    "GAMMA_RULES",
    "KERNELS",
    "KERNEL_NAMES",
    "RBF",
    "AdditiveChi2",
    "Chi2",
    "Cosine",
    "DirectRBF",
    "Form",
    "Function",
    "InnerProductKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Sigmoid",
    "bandwidth",
    "check_rows_for_kernel",
    "dense_product",
    "make_kernel",
    "middle",
]
