"""Which clusters to make of eigenvectors, judged by links between nearest rows.

Eigenvectors are a relaxation of the cut, and k-means on their rows is one way of several to make clusters of them. Rows
of length 1 are right where clusters are well apart: there a cluster is a direction. Where eigenvalues are low, the rows
of one large cluster spread over many directions, and k-means splits it rather than set a small cluster apart.

What the embedding did not see decides: link each of at most 1,000 rows to its 7 nearest neighbours. Clusters share

    L = (1/k) Σ_j out_j / links_j

of their links, out_j those that lead from cluster j to others. Row i with o_i such links of d_i contributes
c_i = (o_i − L_j d_i) / (k links_j) to the error of L, so L − L' of two partitions has the standard error |c − c'|.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from biclique._typing import FloatArray, IntArray, RandomState, Rows
from biclique.kernels import Nearby, neighbor_links
from biclique.runtime import check_random
from biclique.spectral.assign import (
    CLEARLY_MORE,
    POINT_ROWS,
    POINT_STARTS,
    SAMPLE_ROWS,
    Assign,
    Assignment,
    LargestCoordinate,
    assign_sampled,
    by_sorted_centres,
    has_dust,
    kmeans,
)
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.lloyd import KernelKMeansProblem, kernel_kmeans

FEW_LINKS = 0.005
"""Clusters that share so few of their links are left as they are."""

HALF = 0.5
"""Clusters of another K must share at most this part of the links, and those of points, unless their cut is clearly
lower. For another K, any part from 0.25 to 0.8 does the same."""

STANDARD_ERRORS = 2.0
"""Other clusters of the same eigenvectors, and those of points, must share fewer links by so many."""

STEPS, RISE, RIDGE = 100, 1e-3, 1e-6
"""Of the mixture: most steps, the rise of the mean log-likelihood that ends them, and the share of the variance that is
added to every column."""


@dataclass(frozen=True, eq=False)
class Linked:
    """Some rows, and which of them are linked."""

    places: IntArray
    links: sparse.csr_array

    @classmethod
    def of(cls, nearby: Nearby | None) -> Linked | None:
        """These rows, linked to their nearest; None for a kernel without a distance, or of categories."""
        links = None if nearby is None else neighbor_links(nearby)
        return None if nearby is None or links is None else cls(nearby.chosen, links)

    @cached_property
    def _ends(self) -> sparse.coo_array:
        return self.links.tocoo()

    @cached_property
    def _degrees(self) -> FloatArray:
        return np.asarray(np.bincount(self._ends.row, self._ends.data, len(self.places)), dtype=float)

    def shared(self, labels: IntArray, n_clusters: int) -> tuple[float, FloatArray]:
        """L of the clusters of all rows, and c of the linked ones. A cluster without links counts as 1."""
        own, ends, degrees = labels[self.places], self._ends, self._degrees
        out = np.bincount(ends.row, ends.data * (own[ends.row] != own[ends.col]), len(own))
        of_all, of_out, rows = (np.bincount(own, x, n_clusters) for x in (degrees, out, None))
        shares = np.where(of_all > 0, of_out / np.where(of_all > 0, of_all, 1.0), 1.0)
        k = int((rows > 0).sum())
        errors = (out - shares[own] * degrees) / (k * np.where(of_all > 0, of_all, 1.0)[own])
        return float(shares[rows > 0].mean()), errors


def round_by_links(
    assign: Assign,
    rows: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    unit: Assignment,
    linked: Linked,
    n_init: int,
) -> tuple[Assignment, str]:
    """The clusters of rows of length 1, or others that clearly share fewer links.

    The others are tried on the linked rows first, with ``n_init`` starts of k-means, the first of them deterministic.
    All rows follow if that is worth it.
    """
    starts = 0 if n_init == 1 else n_init
    k, some = n_clusters, linked.places
    best, reason = unit, ""
    least, errors = linked.shared(unit.labels, k)
    first = least
    if first <= FEW_LINKS:
        return best, reason
    others: tuple[tuple[str, Assign, Assign], ...] = (
        (
            "rows of the embedding as they are",
            assign,
            lambda own: kmeans(own, weights[some], k, n_init=starts, random_state=0),
        ),
        (
            "a mixture of normal distributions in the embedding",
            lambda own: mixture(own, weights, k, starts),
            lambda own: mixture(own, weights[some], k, starts),
        ),
    )
    for name, of_all, of_linked in others:
        labels = np.zeros(len(rows), dtype=np.intp)
        labels[some] = of_linked(rows[some]).labels
        if has_dust(labels[some], weights[some], k, weights) or not _fewer(linked, labels, k, least, errors):
            continue
        found = of_all(rows)
        if has_dust(found.labels, weights, k, weights):
            continue
        best, (least, errors) = found, linked.shared(found.labels, k)
        told = f"{least:.2g} of the links to nearest neighbours lead to another cluster"
        reason = f"labels come from {name}: {told}, of rows of length 1 {first:.2g}"
    return best, reason


def mixture(rows: FloatArray, weights: FloatArray, n_clusters: int, n_init: int) -> Assignment:
    """Clusters of k normal distributions with one covariance Σ, in the coordinates v/√S of the embedding.

    In these, unlike in rows of length 1 or as they are, a row's place does not depend on how many are like it, and a
    round cluster stays about round. The label is the distribution j with the largest ⟨r, Σ⁻¹μ_j⟩ + log π_j −
    ⟨μ_j, Σ⁻¹μ_j⟩/2, a linear function of the embedding's row, since r is that row divided by its first entry. Fitted by
    expectation and maximisation from k-means, on at most ``SAMPLE_ROWS`` rows.
    """
    k, n = n_clusters, len(rows)
    some = np.arange(n) if n <= SAMPLE_ROWS else np.linspace(0, n - 1, SAMPLE_ROWS).astype(np.intp)
    some = some[(rows[some, 0] > 0) & (weights[some] > 0)]
    r, w = rows[some, 1:] / rows[some, :1], weights[some] / weights[some].sum()
    if len(np.unique(r, axis=0)) < k:  # no mixture: one cluster, and the others are dust
        return Assignment(np.zeros(n, dtype=np.intp), LargestCoordinate(np.zeros((rows.shape[1], k)), absolute=False))
    shares = np.eye(k)[kmeans(r, weights[some], k, n_init=n_init, random_state=0).labels]  # of each row, (n, k)
    mean = w @ r
    ridge = RIDGE * float(w @ ((r - mean) ** 2).mean(axis=1)) * np.eye(r.shape[1])
    r -= mean
    whole, before = (w[:, None] * r).T @ r, -np.inf
    for _ in range(STEPS):
        odds = np.maximum(w @ shares, np.finfo(float).tiny)  # π
        centres = (w[:, None] * shares).T @ r / odds[:, None]  # μ
        covariance = whole - (odds[:, None] * centres).T @ centres + ridge
        slopes = np.linalg.solve(covariance, centres.T)  # Σ⁻¹μ, (columns, k)
        offsets = np.log(odds) - np.einsum("kd,dk->k", centres, slopes) / 2
        scores = r @ slopes + offsets
        total = logsumexp(scores, axis=1)
        inner = np.einsum("ij,ij->i", r, np.linalg.solve(covariance, r.T).T)
        now = float(w @ (total - inner / 2)) - np.linalg.slogdet(covariance)[1] / 2
        if now - before < RISE:
            break
        before, shares = now, np.exp(scores - total[:, None])
    rotation = np.vstack([offsets - mean @ slopes, slopes])
    rule = by_sorted_centres(LargestCoordinate(rotation, absolute=False), rows, weights)
    return Assignment(rule.labels(rows), rule)


class PointClusters:
    """Clusters of the rows of X by k-means, made when they are asked for: the same at every order."""

    def __init__(self, points: Rows, weights: FloatArray, n_clusters: int, random_state: RandomState) -> None:
        self.points, self.weights, self.n_clusters, self.random_state = points, weights, n_clusters, random_state
        self._of_linked: IntArray | None = None

    @cached_property
    def _centred(self) -> FloatArray:
        """k-means of rows far from the origin would lose digits."""
        rows: FloatArray = np.asarray(self.points, dtype=float)
        return np.asarray(rows - np.average(rows, axis=0, weights=self.weights))

    def of_linked(self, linked: Linked) -> IntArray:
        """Of linked rows alone. All linked rows that are asked for are the same."""
        if self._of_linked is None:
            self._of_linked = self._found(self._centred[linked.places], self.weights[linked.places])
        return self._of_linked

    @cached_property
    def of_all(self) -> IntArray:
        return self._found(self._centred, self.weights)

    def _found(self, rows: FloatArray, weights: FloatArray) -> IntArray:
        random = check_random(deepcopy(self.random_state))
        return assign_sampled(
            "kmeans",
            rows,
            weights,
            self.n_clusters,
            cut=None,
            n_init=POINT_STARTS,
            random_state=random,
            sample_rows=POINT_ROWS,
        ).labels


def round_points(
    points: PointClusters, cut: NormalizedCut, own: IntArray, linked: Linked, random_state: np.random.RandomState
) -> tuple[Assignment | None, str]:
    """The clusters of k-means on points, after Lloyd steps on the cut, if they share clearly fewer links.

    If many eigenvalues are as large as the k-th, as with columns of noise, k − 1 eigenvectors say little. Clusters of
    points must share fewer links by two standard errors. And either they share at most half of them, or they also have
    a clearly lower cut: clusters hold Σ_j (a_j − δ_j²/ρ) / S_j = (m/2)² (k − 1 − kNCut_m) of B, with a_j, δ_j and S_j
    the sums of K, δ and S over cluster j.
    """
    k, weights, some = points.n_clusters, cut.weights, linked.places
    first, errors = linked.shared(own, k)
    if first <= FEW_LINKS or int(own.max()) + 1 < k:
        return None, ""
    labels = np.zeros(len(own), dtype=np.intp)
    labels[some] = points.of_linked(linked)
    if has_dust(labels[some], weights[some], k, weights) or not _fewer(linked, labels, k, first, errors):
        return None, ""
    found = labels if len(some) == len(labels) else points.of_all
    problem = KernelKMeansProblem(cut)
    if linked.shared(found, k)[0] > HALF * first:
        held, more = (state.gain for state in problem.states([own, found], k))
        if more <= CLEARLY_MORE * held:
            return None, ""
    lowered = kernel_kmeans(problem, found, k, random_state=random_state)
    if has_dust(lowered.labels, weights, k, weights) or not _fewer(linked, lowered.labels, k, first, errors):
        return None, ""
    share = linked.shared(lowered.labels, k)[0]
    told = f"{share:.2g} of the links to nearest neighbours lead to another cluster, of those of the embedding"
    reason = f"labels come from k-means of the rows of X and Lloyd steps on the cut: {told} {first:.2g}"
    return Assignment(lowered.labels, lowered.rule), reason


def _fewer(linked: Linked, labels: IntArray, n_clusters: int, least: float, errors: FloatArray) -> bool:
    """Whether clusters share fewer links than others with L = ``least`` and c = ``errors``, by two standard errors."""
    share, own = linked.shared(labels, n_clusters)
    return least - share > STANDARD_ERRORS * float(np.linalg.norm(errors - own))
