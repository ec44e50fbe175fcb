"""The paper's definitions under their own names: tensors, kernels, contractions, objectives, heat."""

from biclique.multiway.biclique import base_gram, biclique_degrees, biclique_features, biclique_gram, biclique_kernel
from biclique.multiway.heat import (
    HeatKernel,
    HeatLaplacian,
    biclique_heat_kernel,
    heat_flow,
    heat_limit,
    heat_mass_limit,
)
from biclique.multiway.objectives import (
    k_way_normalized_cut,
    literal_k_way_normalized_cut,
    literal_kernel_kmeans_objective,
    literal_tensor_kmeans_objective,
    normalized_cut,
    weighted_kernel_kmeans_objective,
    weighted_tensor_kmeans_objective,
)
from biclique.multiway.symmetric import SymmetricGram, SymmetricShift, symmetric_gram, symmetric_kernel
from biclique.multiway.tensors import (
    contract,
    gram_tensor,
    is_half_symmetric,
    is_symmetric,
    mode_product,
    semidefiniteness,
    tensor_form,
)

__all__ = [
    "HeatKernel",
    "HeatLaplacian",
    "SymmetricGram",
    "SymmetricShift",
    "base_gram",
    "biclique_degrees",
    "biclique_features",
    "biclique_gram",
    "biclique_heat_kernel",
    "biclique_kernel",
    "contract",
    "gram_tensor",
    "heat_flow",
    "heat_limit",
    "heat_mass_limit",
    "is_half_symmetric",
    "is_symmetric",
    "k_way_normalized_cut",
    "literal_k_way_normalized_cut",
    "literal_kernel_kmeans_objective",
    "literal_tensor_kmeans_objective",
    "mode_product",
    "normalized_cut",
    "semidefiniteness",
    "symmetric_gram",
    "symmetric_kernel",
    "tensor_form",
    "weighted_kernel_kmeans_objective",
    "weighted_tensor_kmeans_objective",
]
