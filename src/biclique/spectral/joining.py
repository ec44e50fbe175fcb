"""Parts between which there is no similarity: which of them are clusters, and what becomes of the others.

One convention for kernels, given matrices, neighbour graphs and hypergraphs. k clusters are asked for.

1. A part whose share of the weight is below ``least_share`` is dust. It joins its nearest part, smallest first, until
   none is dust. Dust that has joined dust stays dust, however much it is, unless one connected piece makes up half of
   it: noise adds up to no cluster.
2. If k or more parts are left, the smallest joins its nearest until k are left, and these are the clusters.
3. If q < k parts are left, no cluster spans two of them, and k − q further cuts go where the parts' own
   eigenvalues are largest.

The nearest part is the one at the least distance. For a given matrix it is the one with the most similarity, or the
least volume if there is no similarity at all.

Eigenpairs of the order-2 cut of such a K are known for the parts, and solved inside each of them: B is block diagonal
but for the rank-one term. √(wS) on any union of parts is an eigenvector of K's normalisation with eigenvalue 1, and
eigenvectors of a part's own cut, zero elsewhere, are eigenvectors of the whole. So parts need no iteration, and crowds
of eigenvalues at 1 do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DisconnectedWarning, warn_user
from biclique.gram import NeighborGram
from biclique.kernels import Kernel
from biclique.neighbors.index import NeighborIndex, components, nearest_among, with_ties, without_loops
from biclique.spectral.cut import NormalizedCut, counted_shares, least_share
from biclique.spectral.solver import EigenResult, RitzSpace, Space

CORE = 0.5
"""The share of a part that its largest connected piece must hold; else it is dust that has joined dust."""


LOOSE = 0.25
"""A row with less than this share of the usual degree has hardly any similarity to others."""


WEAK = 5e-4
"""Weaker edges do not link parts: with the default γ, rows that are six times as far apart as usual."""


ASKED = 1000
"""Rows of a large part that are asked for their nearest outside."""


class Nearness(Protocol):
    """How near parts and rows are to each other."""

    def nearest_parts(self, part_of: IntArray, asked: IntArray) -> tuple[FloatArray, IntArray]:
        """How far the nearest other part is from each of the asked ones, and which it is."""

    def nearest_rows(self, rows: IntArray, others: IntArray) -> IntArray:
        """For every row the nearest of the others."""


class NearRows:
    """By the least distance between rows."""

    def __init__(self, rows: Rows | NeighborIndex, n_jobs: int | None = None) -> None:
        self.index = rows if isinstance(rows, NeighborIndex) else NeighborIndex(rows, search="exact", n_jobs=n_jobs)

    def nearest_parts(self, part_of: IntArray, asked: IntArray) -> tuple[FloatArray, IntArray]:
        counts = np.bincount(part_of)
        if counts[asked].max() > ASKED:
            found = [self._of_large(part_of, int(part)) for part in asked]
            return np.array([gap for gap, _ in found]), np.array([part for _, part in found])
        rows = np.flatnonzero(np.isin(part_of, asked))
        # A part has that many rows of its own: one neighbour more lies outside.
        gap, near = self.index.query(self.index.rows[rows], int(counts[asked].max()) + 1)
        first = (part_of[near] != part_of[rows][:, None]).argmax(axis=1)[:, None]  # outside its part
        gap = np.take_along_axis(gap, first, axis=1)[:, 0]
        target = part_of[np.take_along_axis(near, first, axis=1)[:, 0]]
        order = np.lexsort((rows, gap))[::-1]
        best: FloatArray = np.empty(len(counts))
        which = np.empty(len(counts), dtype=np.intp)
        best[part_of[rows[order]]], which[part_of[rows[order]]] = gap[order], target[order]  # the nearest is last
        return best[asked], which[asked]

    def _of_large(self, part_of: IntArray, part: int) -> tuple[float, int]:
        inside = np.flatnonzero(part_of == part)
        asked = inside[:: max(len(inside) // ASKED, 1)]
        near, gap = nearest_among(self.index, asked, np.flatnonzero(part_of != part))
        return float(gap.min()), int(part_of[near[gap.argmin()]])

    def nearest_rows(self, rows: IntArray, others: IntArray) -> IntArray:
        return nearest_among(self.index, rows, others)[0]


class NearByKernel:
    """By the distance that a kernel is made of, for rows that are not points of Euclidean space."""

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self.kernel, self.rows = kernel, rows

    def nearest_parts(self, part_of: IntArray, asked: IntArray) -> tuple[FloatArray, IntArray]:
        found = [self._of_part(part_of, int(part)) for part in asked]
        return np.array([gap for gap, _ in found]), np.array([part for _, part in found])

    def _of_part(self, part_of: IntArray, part: int) -> tuple[float, int]:
        inside, outside = np.flatnonzero(part_of == part), np.flatnonzero(part_of != part)
        rows = inside[:: max(len(inside) // ASKED, 1)]
        gap, near = self.kernel.nearest(self.rows[rows], self.rows[outside])
        return float(gap.min()), int(part_of[outside[near[gap.argmin()]]])

    def nearest_rows(self, rows: IntArray, others: IntArray) -> IntArray:
        return others[self.kernel.nearest(self.rows[rows], self.rows[others])[1]]


def near_rows(rows: Rows, kernel: Kernel | None = None, n_jobs: int | None = None) -> Nearness:
    """How near rows are, by Euclidean distances unless these mean nothing to the kernel."""
    return NearRows(rows, n_jobs) if kernel is None or kernel.euclidean else NearByKernel(kernel, rows)


class LeastVolume:
    """If parts have no similarity at all: those of least volume are nearest, so that sizes become even."""

    def __init__(self, degrees: FloatArray, weights: FloatArray | None = None) -> None:
        self.degrees = degrees
        self.weights = np.ones(len(degrees)) if weights is None else weights

    def nearest_parts(self, part_of: IntArray, asked: IntArray) -> tuple[FloatArray, IntArray]:
        volumes = np.repeat(np.bincount(part_of, self.weights * self.degrees)[None, :], len(asked), axis=0)
        volumes[np.arange(len(asked)), asked] = np.inf
        return np.zeros(len(asked)), volumes.argmin(axis=1)

    def nearest_rows(self, rows: IntArray, others: IntArray) -> IntArray:
        return np.full(len(rows), others[int(self.degrees[others].argmax())])


class MostSimilar(LeastVolume):
    """By the similarity in a given matrix, dense or sparse."""

    def __init__(self, K: Rows, weights: FloatArray) -> None:
        super().__init__(np.asarray(K @ weights).ravel(), weights)
        self.K = K

    def nearest_parts(self, part_of: IntArray, asked: IntArray) -> tuple[FloatArray, IntArray]:
        n, n_parts = len(part_of), int(part_of.max()) + 1
        indicator = sparse.csr_array((self.weights, (np.arange(n), part_of)), shape=(n, n_parts))
        rows = np.flatnonzero(np.isin(part_of, asked))
        between = indicator[rows].T @ (self.K[rows] @ indicator)
        between = np.asarray(between.todense() if sparse.issparse(between) else between)[asked]
        between[np.arange(len(asked)), asked] = 0.0
        gaps, targets = super().nearest_parts(part_of, asked)
        most = between.max(axis=1)
        return np.where(most > 0, -most, gaps), np.where(most > 0, between.argmax(axis=1), targets)

    def nearest_rows(self, rows: IntArray, others: IntArray) -> IntArray:
        block = self.K[rows][:, others]
        most = np.asarray(block.max(axis=1).todense() if sparse.issparse(block) else block.max(axis=1)).ravel()
        where = np.asarray(block.argmax(axis=1)).ravel()
        return np.where(most > 0, others[where], super().nearest_rows(rows, others))


@dataclass(frozen=True)
class Joined:
    """Parts after dust has joined others, and after the smallest have joined others if there were too many."""

    part_of: IntArray  # (n,)
    whole: np.ndarray  # by part: whether it may be cut further, being one solid part with or without dust
    dust: np.ndarray  # (n,), rows of dust that joined a solid part
    solid_sizes: FloatArray
    """Weights of the parts that are not dust, largest first."""

    @property
    def n_parts(self) -> int:
        return len(self.whole)

    def core(self, part: int) -> IntArray:
        """The rows of a part that are not dust, ascending."""
        return np.flatnonzero((self.part_of == part) & ~self.dust)

    def like(self, near: Nearness) -> IntArray:
        """For every row the row whose label it takes: for dust, its nearest of the same part that is not."""
        out = np.arange(len(self.part_of))
        for part in np.unique(self.part_of[self.dust]):
            rows = np.flatnonzero((self.part_of == part) & self.dust)
            out[rows] = near.nearest_rows(rows, self.core(int(part)))
        return out

    def warn(self, most: int, what: str, cure: str) -> None:
        """Say that solid parts had to be joined: ``what`` fell apart, and what would help."""
        if len(self.solid_sizes) <= most:
            return
        shown = ", ".join(f"{size:g}" for size in self.solid_sizes[:5]) + (", …" if len(self.solid_sizes) > 5 else "")
        warn_user(
            f"{what.format(n=len(self.solid_sizes), shown=shown)}, more than the {most} that were asked for: the "
            f"nearest are put together. {cure}",
            DisconnectedWarning,
        )


def join_parts(
    found: IntArray, weights: FloatArray, n_clusters: int, most: int, near: Nearness, share: float | None = None
) -> Joined:
    """At most ``most`` parts of what was found, by the convention of this module.

    ``share`` is the least share if the rows stand for more rows than themselves.
    """
    least = least_share(weights, n_clusters) if share is None else share
    found_sizes = counted_shares(found, weights)
    part_of, sizes = found, found_sizes
    solid_row = found_sizes[found] >= least
    while len(sizes) > 1:
        largest = np.zeros(len(sizes))
        np.maximum.at(largest, part_of, found_sizes[found])
        dust = np.flatnonzero((sizes < least) | (largest < np.minimum(least, CORE * sizes)))
        if not len(dust):
            break
        asked = dust[sizes[dust] <= sizes[dust].min() * (1 + 1e-12)]
        part_of = _merged(part_of, asked, near.nearest_parts(part_of, asked)[1])
        sizes = counted_shares(part_of, weights)
    solid_sizes = np.sort(np.bincount(part_of, weights).astype(float))[::-1]
    while len(sizes) > most:
        asked = np.flatnonzero(sizes <= sizes.min() * (1 + 1e-12))
        gaps, targets = near.nearest_parts(part_of, asked)
        best = int(np.lexsort((asked, gaps))[0])
        part_of = _merged(part_of, asked[best : best + 1], targets[best : best + 1])
        sizes = counted_shares(part_of, weights)
    # A piece that became solid through what joined it is as good as one that was.
    main = np.zeros(len(sizes))
    np.maximum.at(main, part_of, found_sizes[found])
    core_row = solid_row | (found_sizes[found] == main[part_of])
    pieces = np.unique(part_of[core_row] * len(found_sizes) + found[core_row]) // len(found_sizes)
    return Joined(part_of, np.bincount(pieces, minlength=len(sizes)) == 1, ~core_row, solid_sizes)


def _merged(part_of: IntArray, parts: IntArray, targets: IntArray) -> IntArray:
    """Every part put into its target, one after the other; one that has grown in the meantime stays."""
    owner = np.arange(int(part_of.max()) + 1)

    def root(part: int) -> int:
        while owner[part] != part:
            part = int(owner[part])
        return part

    grown: set[int] = set()
    for part, target in zip(parts.tolist(), targets.tolist(), strict=True):
        if part not in grown:
            owner[part] = root(target)
            grown.update((part, int(owner[part])))
    roots = np.array([root(part) for part in range(len(owner))])
    return np.asarray(np.unique(roots, return_inverse=True)[1][part_of])


def parts_cure(gamma: float | None) -> str:
    """What to do about parts of a kernel."""
    cure = f"lower gamma (now {gamma:.3g})" if gamma is not None else "use a kernel that reaches further"
    return f"If the wrong ones are, {cure}; or ask for more clusters."


def shares_of_parts(values: list[FloatArray], total: int) -> list[int]:
    """How many of ``total`` each part gets: one, and more if its eigenvalues are among the largest."""
    shares = [1] * len(values)
    pairs = [(-float(value), number) for number, own in enumerate(values) for value in own]
    for _, number in sorted(pairs)[: max(total - len(values), 0)]:
        shares[number] += 1
    return shares


@dataclass(frozen=True)
class Connected:
    """A neighbour graph whose parts are ready to be solved."""

    gram: NeighborGram
    joined: Joined
    usual_degree: float


def connect(gram: NeighborGram, weights: FloatArray, n_clusters: int, most: int) -> Connected:
    """The graph in at most so many parts, without loops, its dust and its loose rows tied to others.

    1. Parts are what edges above ``WEAK`` connect, joined by the convention of this module. A row of dust is tied to
       its nearest row that is not dust, of the part that it joins.
    2. A loose row is tied to the nearest row of its own part that is not loose. What similarity such rows have is
       mostly to each other, and they would be clusters by themselves. One tie a row adds no way between two clusters
       that their own edges do not have.
    """
    K = without_loops(gram.K)
    degrees = np.asarray(K.sum(axis=1)).ravel()
    found = components(K, WEAK)
    near: Nearness = MostSimilar(K, weights) if gram.index is None else NearRows(gram.index)
    joined = join_parts(found, weights, n_clusters, most, near)
    joined.warn(
        most,
        f"the neighbour graph falls into {{n}} connected parts ({{shown}} of {gram.n} rows)",
        "If parts belong together, a larger n_neighbors connects them; if not, ask for more.",
    )
    dust = np.flatnonzero(joined.dust)
    K = with_ties(K, dust, joined.like(near)[dust])
    if gram.index is not None:
        K = _tie_loose_rows(K, degrees, found, joined, near)
    return Connected(gram.with_graph(K), joined, float(np.median(degrees)))


def _tie_loose_rows(
    K: sparse.csr_array, degrees: FloatArray, found: IntArray, joined: Joined, near: Nearness
) -> sparse.csr_array:
    for part in np.unique(found[~joined.dust]):
        members = np.flatnonzero(found == part)
        loose = degrees[members] < LOOSE * np.median(degrees[members])
        if loose.any():
            K = with_ties(K, members[loose], near.nearest_rows(members[loose], members[~loose]))
    return K


# Eigenpairs of parts


Solve = Callable[[IntArray, int, float], EigenResult]
"""So many leading eigenpairs of the cut of some rows alone; those below a floor need not be found."""


@dataclass(frozen=True)
class PartedPairs:
    """Eigenpairs of the whole, and the eigenvalues that each part has of its own."""

    pairs: EigenResult
    values_of_parts: list[FloatArray]


@dataclass(frozen=True)
class PartedSpace:
    """The parts' own vectors, eigenvalue 1, and a space inside each part that was solved."""

    known: FloatArray  # (n, q − 1)
    inside: list[tuple[IntArray, Space]]

    def rescaled(self, ratio: FloatArray, columns: int) -> tuple[FloatArray, FloatArray]:
        """As ``RitzSpace.rescaled``: the leading vectors of all pieces, of one length, and their images."""
        root = np.sqrt(ratio)[:, None]
        everywhere: IntArray = np.arange(len(ratio))
        pieces: list[tuple[IntArray, FloatArray, FloatArray]] = [(everywhere, root * self.known, self.known / root)]
        pieces += [(members, *space.rescaled(ratio[members], columns)) for members, space in self.inside]
        lengths = [np.linalg.norm(start, axis=0) for _, start, _ in pieces]
        values = [
            np.einsum("ij,ij->j", start, image) / size**2
            for (_, start, image), size in zip(pieces, lengths, strict=True)
        ]
        ranked = sorted((-float(x), piece, j) for piece, own in enumerate(values) for j, x in enumerate(own))[:columns]
        starts, images = np.zeros((2, len(ratio), len(ranked)))
        for column, (_, piece, j) in enumerate(ranked):
            members, start, image = pieces[piece]
            starts[members, column] = start[:, j] / lengths[piece][j]
            images[members, column] = image[:, j] / lengths[piece][j]
        return starts, images


def parted_rotation(volumes: FloatArray) -> FloatArray:
    """A reflection of the parts' own vectors, (q, q), after which the first one is √(wS) of all rows, normalised."""
    away = np.sqrt(volumes / volumes.sum()) - np.eye(len(volumes))[0]
    length = float(away @ away)
    return np.eye(len(volumes)) - (2 * np.outer(away, away) / length if length > 0 else 0.0)


def part_vectors(cut: NormalizedCut, part_of: IntArray) -> FloatArray:
    """Orthonormal vectors that span the parts' √(wS), (n, q); the first is the trivial one."""
    volumes = np.bincount(part_of, cut.weights * cut.shrunken).astype(float)
    of_parts = parted_rotation(volumes) / np.sqrt(volumes)[:, None]
    return np.asarray(np.sqrt(cut.weights * cut.shrunken)[:, None] * of_parts[part_of])


def parted_eigenpairs(
    cut: NormalizedCut, part_of: IntArray, cores: Sequence[IntArray], k: int, solve: Solve
) -> PartedPairs:
    """The k leading eigenpairs of B at order 2: q − 1 of the parts, and the largest of the parts' own.

    ``cores`` are the rows of each part whose own cut is solved; none for a part that is not to be cut. The product with
    all vectors, one pass, gives true residuals; a search that was given up gets no such pass.
    """
    n, q = len(part_of), len(cores)
    known = part_vectors(cut, part_of)[:, 1 : k + 1]
    own: list[EigenResult] = []
    for members in cores:
        wanted = min(k + 1 - q, len(members) - 1)
        if wanted < 1:
            own.append(EigenResult.none(np.empty(len(members))))
            continue
        best = sorted((float(value) for found in own for value in found.values), reverse=True)
        floor = best[k - q] if len(best) > k - q else -np.inf  # the parts before this one have enough above it
        own.append(solve(members, wanted, floor))
    ranked = sorted((-float(value), part, j) for part, found in enumerate(own) for j, value in enumerate(found.values))
    chosen = ranked[: max(k + 1 - q, 0)]
    vectors, images = np.zeros((2, n, known.shape[1] + len(chosen)))
    vectors[:, : known.shape[1]] = images[:, : known.shape[1]] = known
    for column, (_, part, j) in enumerate(chosen, start=known.shape[1]):
        vectors[cores[part], column] = own[part].vectors[:, j]
        images[cores[part], column] = own[part].images[:, j]
    finished = all(found.converged for found in own)
    if finished:
        images = cut.matmat(vectors)
    values = np.einsum("ij,ij->j", vectors, images)
    residuals = np.linalg.norm(images - vectors * values, axis=0)
    passes = max((found.n_passes for found in own), default=0)
    cut.n_passes += passes
    target = max((found.target for found in own if len(found.values)), default=0.0)
    inside = [
        (members, found.space or RitzSpace.of_pairs(found))
        for members, found in zip(cores, own, strict=True)
        if len(found.values)
    ]
    pairs = EigenResult(
        values, vectors, images, residuals, passes + finished, finished, float(target), PartedSpace(known, inside)
    )
    return PartedPairs(pairs, [found.values for found in own])
