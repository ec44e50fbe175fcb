"""Tensors of small sizes: products, contractions, symmetries and semi-definiteness, as the paper defines them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.utils import check_random_state

from biclique._typing import FloatArray
from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.multiway.biclique import base_gram, check_even_order, square
from biclique.runtime.memory import format_bytes

MOST_BYTES = 2**30
"""Largest tensor that is made unless more is asked for."""

SYMMETRY = 1e-10
"""Entries that differ by less, as a share of the largest, are equal."""

DEFINITE = 1e-10
"""An eigenvalue is negative if it lies below zero by more than this share of the largest."""


def gram_tensor(K: FloatArray, order: int, *, max_bytes: int = MOST_BYTES) -> FloatArray:
    """The Gram tensor 𝒦 of the biclique kernel: 𝒦[i₁..i_h, j₁..j_h] = Σ_γ Σ_ν K[i_γ, j_ν], shape (n,) · m.

    For small n only: it has n^m entries, and is refused beyond ``max_bytes``.
    """
    K, m = square(K), check_even_order(order)
    needed = 8 * len(K) ** m
    if needed > max_bytes:
        raise MemoryLimitError(
            f"a tensor of order {m} over {len(K)} points needs {format_bytes(float(needed))} ({needed} bytes), limit "
            f"{format_bytes(max_bytes)}: use biclique_gram or symmetric_gram, which give its contraction in O(n²), or "
            "raise max_bytes."
        )
    tensor = np.zeros((len(K),) * m)
    for first, second in product(range(m // 2), range(m // 2, m)):
        shape = [1] * m
        shape[first], shape[second] = K.shape
        tensor += K.reshape(shape)
    return tensor


def cubical(tensor: FloatArray) -> FloatArray:
    """A tensor with all dimensions alike, as a float array."""
    tensor = np.asarray(tensor, dtype=float)
    if tensor.ndim < 2 or len(set(tensor.shape)) != 1:
        raise DataError(f"the tensor must have at least two modes of one size, got shape {tensor.shape}.")
    return tensor


def mode_product(tensor: FloatArray, vector: FloatArray, mode: int) -> FloatArray:
    """𝒜 ×_k x: sum over mode k against a vector; the mode stays with size 1 (the paper's Eq. 2, zero-based here)."""
    tensor, vector = np.asarray(tensor, dtype=float), np.asarray(vector, dtype=float)
    if not 0 <= mode < tensor.ndim or vector.shape != (tensor.shape[mode],):
        raise DataError(
            f"mode {mode} of a tensor of shape {tensor.shape} cannot take a vector of shape {vector.shape}."
        )
    return np.expand_dims(np.tensordot(tensor, vector, axes=(mode, 0)), mode)


def contract(tensor: FloatArray, keep: tuple[int, int]) -> FloatArray:
    """The matrix of sums over every mode but two, zero-based.

    ``keep=(0, m // 2)``, one mode of each half, is the biclique contraction K^(m); ``keep=(0, 1)`` is that of
    Ghoshdastidar and Dukkipati (the paper's A_g), which for a biclique tensor is another matrix.
    """
    tensor = cubical(tensor)
    i, j = keep
    if i == j or not (0 <= i < tensor.ndim and 0 <= j < tensor.ndim):
        raise ParameterError(f"keep must name two different modes from 0 to {tensor.ndim - 1}, got {keep}.")
    matrix = tensor.sum(axis=tuple(mode for mode in range(tensor.ndim) if mode not in (i, j)))
    return matrix if i < j else np.asarray(matrix.T)


def _invariant(tensor: FloatArray, orders: Iterable[tuple[int, ...]]) -> bool:
    tolerance = SYMMETRY * float(np.abs(tensor).max(initial=0.0))
    return all(np.abs(tensor - tensor.transpose(order)).max(initial=0.0) <= tolerance for order in orders)


def _neighbour_swaps(m: int) -> list[tuple[int, ...]]:
    """The orders of m modes with two neighbours swapped; these generate all permutations."""
    return [(*range(i), i + 1, i, *range(i + 2, m)) for i in range(m - 1)]


def is_half_symmetric(tensor: FloatArray) -> bool:
    """Whether entries stay when indices are permuted inside either half, and when the halves are swapped.

    The paper's Eq. 1 read literally gives only the swap; the examples of its appendix need both.
    """
    tensor = cubical(tensor)
    m = tensor.ndim
    if m % 2:
        raise ParameterError(f"half-symmetry needs an even number of modes, got {m}: there are no halves.")
    half = m // 2
    inside_halves = [swap for place, swap in enumerate(_neighbour_swaps(m), 1) if place != half]
    return _invariant(tensor, [*inside_halves, (*range(half, m), *range(half))])


def is_symmetric(tensor: FloatArray) -> bool:
    """Whether entries stay under every permutation of their indices."""
    tensor = cubical(tensor)
    return _invariant(tensor, _neighbour_swaps(tensor.ndim))


@dataclass(frozen=True)
class Definiteness:
    """What is known about 𝒜 v^m ≥ 0 for all v.

    ``verdict`` is True only with an exact certificate, False with a ``witness`` v, None if sampling found nothing
    against it, which proves nothing.
    """

    verdict: bool | None
    reason: str
    witness: FloatArray | None = None


def tensor_form(tensor: FloatArray, v: FloatArray) -> float:
    """𝒜 v^m = 𝒜 ×₁ v ⋯ ×_m v, a number."""
    tensor = cubical(tensor)
    for _ in range(tensor.ndim):
        tensor = np.tensordot(tensor, np.asarray(v, dtype=float), axes=(0, 0))
    return float(tensor)


def semidefiniteness(
    tensor: FloatArray, *, n_samples: int = 1000, random_state: int | np.random.RandomState | None = None
) -> Definiteness:
    """Whether an even-order tensor is semi-definite, 𝒜 v^m ≥ 0 for all v, as far as that can be known.

    A tensor of a biclique kernel has an exact certificate, 𝒦 v^m = h² (1ᵀv)^(m−2) vᵀK v: it is semi-definite
    exactly when K is (Theorem 1). Any other is tested on random vectors, which can refute but never prove it.
    """
    tensor = cubical(tensor)
    if tensor.ndim % 2:
        raise ParameterError(
            f"a tensor of odd order {tensor.ndim} is never semi-definite: 𝒜(−v)^m = −𝒜v^m, so both signs occur."
        )
    K = _biclique_base(tensor)
    if K is not None:
        return _certified(K)
    random = check_random_state(random_state)
    scale = float(np.abs(tensor).max(initial=0.0))
    for _ in range(n_samples):
        v = random.standard_normal(len(tensor))
        value = tensor_form(tensor, v)
        if value < -DEFINITE * scale * np.abs(v).sum() ** tensor.ndim:
            return Definiteness(False, f"a vector v with 𝒜 v^m = {value:.3g} < 0 was found by sampling", v)
    return Definiteness(None, f"none of {n_samples} random vectors refutes it, which proves nothing")


def _biclique_base(tensor: FloatArray) -> FloatArray | None:
    """K if the tensor is that of a biclique kernel, else None."""
    m = tensor.ndim
    K = base_gram(contract(tensor, (0, m // 2)), m, scaled=True)
    difference = np.abs(gram_tensor(K, m, max_bytes=tensor.nbytes) - tensor).max(initial=0.0)
    same = difference <= SYMMETRY * float(np.abs(tensor).max(initial=0.0)) and np.allclose(
        K, K.T, rtol=1e-9, atol=1e-12
    )
    return (K + K.T) / 2 if same else None


def _certified(K: FloatArray) -> Definiteness:
    values, vectors = np.linalg.eigh(K)
    if values[0] >= -DEFINITE * max(float(np.abs(values).max(initial=0.0)), np.finfo(float).tiny):
        return Definiteness(True, f"it is a biclique kernel's, and its base K has no eigenvalue below {values[0]:.3g}")
    v = vectors[:, 0].copy()
    if abs(v.sum()) < 1e-3:
        # (1ᵀv)^(m−2) must not vanish: step off, as far as vᵀKv stays negative.
        step = np.sign(v.sum() or 1.0) * np.ones(len(v))
        while (v + step) @ K @ (v + step) >= values[0] / 2:
            step /= 2
        v += step
    return Definiteness(False, f"it is a biclique kernel's, and its base K has the eigenvalue {values[0]:.3g}", v)
