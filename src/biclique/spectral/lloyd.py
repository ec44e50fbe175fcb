"""Weighted kernel k-means on any Gram operator: Lloyd steps that lower the order-m normalised cut itself.

With weights ω = wS and the kernel κ'_il = (K_il − δ_i δ_l/ρ)/(S_i S_l), the objective J of weighted kernel k-means and
the cut are one thing, kNCut_m = k − 1 − (2/m)² (trace − J). The kernel is semi-definite when K is, so a Lloyd step
never raises the cut; otherwise the diagonal is shifted, which adds a constant to J. A step costs one pass over K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray
from biclique.gram.operator import CrossGram
from biclique.spectral.cut import NormalizedCut, shrunken_degrees
from biclique.spectral.solver import top_eigenpairs

ROUNDING = 10
"""A rise of the objective below this many units of rounding ends the search. It does not mean that K is indefinite."""


@dataclass(frozen=True)
class _State:
    """A partition with its sums."""

    labels: IntArray
    product: FloatArray  # P_ij = Σ_{l∈j} ω_l κ'_il, (n, k)
    masses: FloatArray  # s_j = Σ_{i∈j} ω_i, (k,)
    within: FloatArray  # q_j = Σ_{i,l∈j} ω_i ω_l κ'_il, (k,)

    @property
    def gain(self) -> float:
        """Σ_j q_j/s_j = trace − J: what Lloyd steps raise."""
        return float((self.within / self.masses).sum())


class KernelKMeansProblem:
    """Weighted kernel k-means with κ'_il = (K_il − c δ_i δ_l/ρ)/(t_i t_l) and weights ω; ``product`` is κ' V.

    ``weights=None`` is the cut: t = S, ω = wS, c = 1. Given weights v (one for each vertex) are those of plain weighted
    kernel k-means on K: t = 1, ω = wv, c = 0. (With K^(m) in the place of K, J would only be multiplied by n^(m−2).)

    ``factor`` multiplies the J that is reported for given weights. The paper's J' has K^(m) and the weights D_v⁻¹,
    with D_v = n^(m−2) (m/2)² S: it is (2/m)² times J with K and 1/S.
    """

    def __init__(self, cut: NormalizedCut, weights: FloatArray | None = None, *, factor: float = 1.0) -> None:
        self.cut, self.factor, self.centred, self.shape = cut, factor, weights is None, cut.shape
        if weights is None:
            self.scale, self.omega, self.centre = cut.shrunken, cut.weights * cut.shrunken, cut.degrees / cut.total
        else:
            self.scale, self.omega = np.ones(cut.shape[0]), cut.weights * weights
            self.centre = np.zeros(cut.shape[0])  # c δ/ρ
        diagonal = cut.gram.diagonal()
        self.own = (diagonal - self.centre * cut.degrees) / self.scale**2  # κ'_ii
        self.trace = float(self.omega @ self.own)
        # Products round relative to K itself, however little of it the centring leaves.
        uncentred = float(self.omega @ np.abs(diagonal / self.scale**2))
        self.rounding = ROUNDING * float(np.finfo(cut.gram.dtype).eps) * uncentred

    def product(self, V: FloatArray) -> FloatArray:
        """κ' V, one pass."""
        scaled = V / self.scale[:, None]
        self.cut.n_passes += 1
        product = self.cut.gram.matmat(scaled)
        product -= np.outer(self.centre, self.cut.degrees @ scaled)
        return np.asarray(product / self.scale[:, None])

    def matmat(self, V: FloatArray) -> FloatArray:
        """ω^(1/2) κ' ω^(1/2) V: for the cut this is B."""
        root = np.sqrt(self.omega)[:, None]
        return np.asarray(root * self.product(root * V))

    def state(self, labels: IntArray, k: int) -> _State:
        """The sums of a partition, one pass."""
        weighted = _by_cluster(self.omega, labels, k)
        product = self.product(weighted)
        return _State(labels, product, weighted.sum(axis=0), np.einsum("ij,ij->j", weighted, product))

    def cut_value(self, gain: float, k: int) -> float:
        """kNCut_m of a partition into k parts with this gain; ``factor`` · J for given weights.

        At order infinity every cut is k − 1; what is left to lower is its scaled limit, −Σ_j (a_j − δ_j²/ρ)/S_j.
        """
        if not self.centred:
            return self.factor * (self.trace - gain)
        return -gain if np.isinf(self.cut.order) else k - 1 - (2 / self.cut.order) ** 2 * gain


@dataclass(frozen=True)
class NewRows:
    """Rows that are not training rows, as rules for labels see them."""

    cross: Callable[[], CrossGram]
    """Their similarities to the training rows."""
    embedded: Callable[[], tuple[FloatArray, np.ndarray]]
    """Their rows of the embedding, scaled as labels need them, and which are like any training row."""


@dataclass(frozen=True)
class KernelRule:
    """label(x) = argmin_j of the distance in feature space to the mean of cluster j."""

    order: float
    mean_degree: float
    centred: bool
    coefficients: FloatArray  # [w, (ω/t) 1_j], (n, 1 + k)
    centre: FloatArray  # Σ_{l∈j} ω_l δ_l / (t_l ρ), (k,)
    masses: FloatArray
    within: FloatArray
    faint: float
    """A new row with a degree of no more is like no training row at all."""

    def of_new(self, new: NewRows) -> tuple[IntArray, np.ndarray]:
        """The cluster of new rows, and which of them are like any training row."""
        product = new.cross().matmat(self.coefficients)
        degrees, sums = product[:, 0], product[:, 1:]
        scale = shrunken_degrees(degrees, self.mean_degree, self.order) if self.centred else np.ones(len(degrees))
        sums = sums - np.outer(degrees, self.centre)
        sums = np.divide(sums, scale[:, None], out=np.zeros_like(sums), where=scale[:, None] > 0)
        return np.asarray(np.argmax(_scores(sums, self.masses, self.within), axis=1)), np.abs(degrees) > self.faint

    def keeping(self, clusters: IntArray) -> KernelRule:
        """The same rule for some of the clusters, numbered anew."""
        columns = np.concatenate([[0], 1 + np.asarray(clusters)])
        return replace(
            self,
            coefficients=self.coefficients[:, columns],
            centre=self.centre[clusters],
            masses=self.masses[clusters],
            within=self.within[clusters],
        )


@dataclass(frozen=True)
class KernelKMeansResult:
    """Where Lloyd steps ended."""

    labels: IntArray
    rule: KernelRule
    history: FloatArray
    """The cut (or J, for given weights) of the start and after every step; never rising."""
    n_iter: int
    shift: float
    converged: bool


def kernel_kmeans(
    problem: KernelKMeansProblem,
    labels: IntArray,
    k: int,
    *,
    max_iter: int = 100,
    random_state: int | np.random.RandomState | None = None,
    report: Callable[[int, float], None] | None = None,
) -> KernelKMeansResult:
    """Lloyd steps from a start until nothing moves; the objective never rises.

    If a step would raise it, K is not semi-definite: the diagonal is then shifted by the lowest eigenvalue.
    Clusters that lose all their rows get the row that lies farthest from its own mean.
    """
    state = problem.state(_without_empty(problem, labels, k, None), k)
    history, shift = [problem.cut_value(state.gain, k)], 0.0
    while True:
        labels = _step(problem, state, shift, k)
        converged = np.array_equal(labels, state.labels)
        if converged or len(history) > max_iter:
            break
        new = problem.state(labels, k)
        if new.gain < state.gain:
            if shift == 0 and state.gain - new.gain > problem.rounding:
                shift = _lowest_shift(problem, random_state)
                if shift > 0:
                    continue
            converged = True  # all that is left is rounding
            break
        state = new
        history.append(problem.cut_value(state.gain, k))
        if report is not None:
            report(len(history) - 1, history[-1])
    weighted = _by_cluster(problem.omega / problem.scale, state.labels, k)
    rule = KernelRule(
        order=problem.cut.order,
        mean_degree=problem.cut.mean_degree,
        centred=problem.centred,
        coefficients=np.column_stack([problem.cut.weights, weighted]),
        centre=problem.centre @ weighted,
        masses=state.masses,
        within=state.within,
        faint=problem.cut.faint,
    )
    return KernelKMeansResult(state.labels, rule, np.array(history), len(history) - 1, shift, converged)


def _by_cluster(values: FloatArray, labels: IntArray, k: int) -> FloatArray:
    """Values put into the column of each row's cluster, (n, k)."""
    out = np.zeros((len(labels), k))
    out[np.arange(len(labels)), labels] = values
    return out


def _scores(product: FloatArray, masses: FloatArray, within: FloatArray) -> FloatArray:
    """2 P_ij/s_j − q_j/s_j²: the distance to mean j is κ'_ii less this."""
    return np.asarray(2 * product / masses - within / masses / masses)


def _step(problem: KernelKMeansProblem, state: _State, shift: float, k: int) -> IntArray:
    """Every row to its nearest mean; a row stays where it is in a tie."""
    rows, product = np.arange(len(state.labels)), state.product.copy()
    product[rows, state.labels] += shift  # κ'_ii + σ/ω_i in the place of κ'_ii
    scores = _scores(product, state.masses, state.within + shift * state.masses)
    best = np.argmax(scores, axis=1)
    margin = 1e-12 * np.abs(scores).max(axis=1)
    labels = np.where(scores[rows, best] > scores[rows, state.labels] + margin, best, state.labels)
    return _without_empty(problem, labels, k, distances=problem.own + shift / problem.omega - scores[rows, labels])


def _without_empty(problem: KernelKMeansProblem, labels: IntArray, k: int, distances: FloatArray | None) -> IntArray:
    """Give every empty cluster the row farthest from its mean; without distances the heaviest rows."""
    labels = np.array(labels)
    counts = np.bincount(labels, minlength=k)
    costs = problem.omega * (1.0 if distances is None else distances)
    for empty in np.flatnonzero(counts == 0):
        row = int(np.argmax(np.where(counts[labels] > 1, costs, -np.inf)))
        counts[labels[row]] -= 1
        labels[row], counts[empty] = empty, 1
    return labels


def _lowest_shift(problem: KernelKMeansProblem, random_state: int | np.random.RandomState | None) -> float:
    """What must be added to the diagonal of ω^(1/2) κ' ω^(1/2) to make it semi-definite."""

    class Negative:
        shape = problem.shape
        like = problem.cut.like

        def matmat(self, V: FloatArray) -> FloatArray:
            return -problem.matmat(V)

    lowest = top_eigenpairs(Negative(), 1, tol=1e-2, random_state=random_state)
    return max(float(lowest.values[0] + lowest.residuals[0]), 0.0)


def random_start(n: int, k: int, random_state: int | np.random.RandomState | None) -> IntArray:
    """A random partition of n rows into k parts, none empty."""
    random = check_random_state(random_state)
    labels = random.randint(0, k, n)
    labels[random.permutation(n)[:k]] = np.arange(k)
    return by_first_appearance(labels)


def plus_plus_start(problem: KernelKMeansProblem, k: int, random_state: int | np.random.RandomState | None) -> IntArray:
    """k-means++ in feature space: rows drawn by weight times squared distance; one pass a centre."""
    random = check_random_state(random_state)
    n = problem.shape[0]
    first = int(random.choice(n, p=problem.omega / problem.omega.sum()))
    centres, distances = [first], _distances_to(problem, first)
    labels, nearest = np.zeros(n, dtype=np.intp), distances
    while len(centres) < k:
        odds = np.maximum(problem.omega * nearest, 0.0)
        odds[centres] = 0.0
        if odds.sum() <= 0:
            odds = 1.0 - np.isin(np.arange(n), centres)
        centre = int(random.choice(n, p=odds / odds.sum()))
        distances = _distances_to(problem, centre)
        distances[centre] = -np.inf
        closer = distances < nearest
        labels[closer], nearest = len(centres), np.where(closer, distances, nearest)
        centres.append(centre)
    return by_first_appearance(labels)


def _distances_to(problem: KernelKMeansProblem, row: int) -> FloatArray:
    """κ'_ii − 2κ'_ic + κ'_cc, one pass."""
    unit = np.eye(1, problem.shape[0], row).T
    return np.asarray(problem.own - 2 * problem.product(unit)[:, 0] + problem.own[row])


def by_first_appearance(labels: IntArray) -> IntArray:
    """The same partition, numbered in the order in which its parts appear."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]
