"""The search for the number of clusters: the largest one that random halves of the rows find again.

One embedding of at most 2,000 drawn rows gives labels for every k. Ten random halves have an embedding of their own
each. The stability of k is the mean agreement of both on the rows of a half. There are no fewer clusters than connected
components of the hypergraph of neighbourhoods that are large enough for one, unless halves find fewer again.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from biclique._typing import FloatArray, IntArray, RandomState
from biclique.exceptions import ParameterError, SelectionWarning, StructureWarning, warn_user
from biclique.features.neighborhoods import canonical_order
from biclique.fit.given_rows import read_weighted
from biclique.fit.settings import CONSTRAINTS, Settings, check_parameters
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, RowSource, Vertices, distinct_rows
from biclique.runtime.arguments import check_choice, check_count, fixed_seed
from biclique.runtime.threads import Pulse, run_groups, single_threaded_blas
from biclique.selection.count_result import EQUAL, Counted, CountResult
from biclique.selection.criteria import agreement, best_jaccard
from biclique.selection.one_embedding import OneEmbedding, count_parts
from biclique.selection.structure import Structure, structure_of

DRAWN_ROWS = 2_000
"""Rows that are looked at: a cluster of 2 % has 20 rows in a half, and below some 14 it is merged with others."""

MOST_CLUSTERS = 20
"""The default of ``k_max``."""

HALVES = 10
"""Random halves: five splits, both sides. The standard error of their mean is known to about a quarter."""

ROWS_PER_CLUSTER = 4
"""Drawn rows for each cluster at the least, so that a half has two."""

POOR = 0.8
"""Below this stability a reason says that clusters are found again poorly."""

FOUND_AGAIN = 0.85
"""The Jaccard index from which on Hennig (2007) calls a cluster highly stable."""


@dataclass(frozen=True)
class Curve:
    """What some rows give."""

    labels: list[IntArray]  # for every number of clusters that is tried
    parts: IntArray  # the connected component of every row


def select_n_clusters(
    X: Any,
    k_max: int = MOST_CLUSTERS,
    *,
    metric: str = "euclidean",
    sample_weight: Any = None,
    n_rows: int = DRAWN_ROWS,
    n_halves: int = HALVES,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> CountResult:
    """Choose the number of clusters without labels, and say whether there are clusters at all.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n_samples, n_features)
        Columns count as they are: scale them first if their units differ.
    k_max : int, default=20
        The largest number of clusters that is tried.
    metric : {"euclidean", "cosine"}, default="euclidean"
        How rows are compared: as the fit compares them. The test for structure looks at the rows as they are.
    sample_weight : array of shape (n_samples,), optional
        How often each row counts.
    n_rows : int, default=2000
        Rows that are drawn. Clusters of fewer than about 28 of them may be missed.
    n_halves : int, default=10
        Random halves of these rows; at least 2.
    random_state, n_jobs, verbose :
        As in ``BicliqueSpectralClustering``. Results do not depend on ``n_jobs``.

    Returns
    -------
    CountResult
        Ctrl-C ends the search: the best so far is returned, with a ``SelectionWarning``. If no structure is found, a
        ``StructureWarning`` says so; a number is returned all the same.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from biclique.selection import select_n_clusters
    >>> X = make_blobs(200, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)[0]
    >>> found = select_n_clusters(X, k_max=6, random_state=0)
    >>> found.n_clusters, found.has_structure
    (3, True)
    """
    check_choice("metric", metric, ("euclidean", "cosine"))
    parameters = {"random_state": random_state, "n_jobs": n_jobs, "kernel_params": {"metric": metric}}
    check_parameters(parameters, CONSTRAINTS)
    settings = Settings.of(parameters, n_columns=1)
    source = ArrayRows(*read_weighted(X, sample_weight))
    with single_threaded_blas(), Progress.of(verbose) as progress:
        found = search_count(settings, source, progress, k_max, n_rows=n_rows, n_halves=n_halves)
    warn_about_structure(found)
    return found


def warn_about_structure(found: CountResult) -> None:
    """Say it if no structure was found."""
    if found.has_structure is False:
        warn_user(f"{found.structure.reason} {pieces_of_a_cloud(found.n_clusters)}", StructureWarning)


def pieces_of_a_cloud(n_clusters: int) -> str:
    """What clusters are if there is no structure."""
    return f"The {n_clusters} clusters are slices of one cloud." if n_clusters > 1 else "All rows are one cluster."


def search_count(
    settings: Settings,
    source: RowSource,
    progress: Progress,
    k_max: int = MOST_CLUSTERS,
    *,
    n_rows: int = DRAWN_ROWS,
    n_halves: int = HALVES,
) -> CountResult:
    """The same for rows of any source."""
    check_count("k_max", k_max)
    check_count("n_rows", n_rows)
    if check_count("n_halves", n_halves) < 2:
        raise ParameterError(f"n_halves must be at least 2, got {n_halves}: a standard error needs two halves.")
    if settings.kernel.given:
        raise ParameterError(
            f"n_clusters='select' needs rows, and affinity={settings.kernel.affinity!r} gives none: pass the rows with "
            "affinity='neighborhoods', or give n_clusters."
        )
    seed = fixed_seed(settings.random_state)
    random = np.random.RandomState(seed)
    vertices = distinct_rows(*source.draw(n_rows, random))
    rows = normalize(vertices.data) if settings.kernel.by_angle else vertices.data  # as the fit compares them
    order = canonical_order(rows)
    vertices, compared_rows = vertices.some(order), replace(vertices, data=rows).some(order)
    halves = random_halves(vertices.n, n_halves, random)
    counts = range(2, min(k_max, vertices.n // ROWS_PER_CLUSTER) + 1)
    if 2 <= vertices.n <= k_max and vertices.weights.min() >= ROWS_PER_CLUSTER:
        k, what = vertices.n, f"there are only {vertices.n} distinct rows"
        reason = f"{k} clusters: {what}, each with {vertices.weights.min():g} copies or more, so each is a cluster."
        structure = Structure(None, f"Structure was not tested: {what}.")
        return CountResult((), k, None, None, reason, k, np.arange(k), structure)
    if not counts:
        k = max(min(2, k_max, vertices.n), 1)
        what = f"k_max is {k_max}" if k_max < 2 else f"there are only {vertices.n} distinct rows"
        reason = f"{k} cluster{'s' if k > 1 else ''}: {what}, so there is nothing to compare."
        structure = structure_of(vertices, np.random.RandomState(seed), progress)
        return CountResult((), k, None, None, reason, vertices.n, np.arange(vertices.n) % k, structure)
    samples, curves, interrupted = [np.arange(vertices.n), *halves], dict[int, Curve](), False
    structure = Structure(None, "Structure was not tested: the search was interrupted.")
    try:
        find_curves(curves, compared_rows, samples, counts, settings.n_jobs, progress)
        structure = structure_of(vertices, np.random.RandomState(seed), progress)
    except KeyboardInterrupt:
        if 0 not in curves or len(curves) < 3:
            raise
        interrupted = True
    counted = compared(curves, vertices.weights, samples, counts)
    k, second, margin, reason = choose_count(counted)
    if interrupted:
        warn_user(f"the search was interrupted, and the best so far is taken: {reason}", SelectionWarning)
    labels = curves[0].labels[k - 2]
    return CountResult(counted, k, second, margin, reason, vertices.n, labels, structure, interrupted=interrupted)


def find_curves(
    found: dict[int, Curve],
    vertices: Vertices,
    samples: Sequence[IntArray],
    counts: range,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """The curves of all rows and of every half, in threads, one after the other into ``found``: Ctrl-C keeps them."""

    def work(number: int, pulse: Pulse) -> None:
        some = vertices.some(samples[number])
        embedding, labels = OneEmbedding(some.data, some.weights, counts[-1]), []
        for k in counts:
            labels.append(embedding.labels(k))
            pulse()
        found[number] = Curve(labels, embedding.parts)

    tick = partial(progress.share, "numbers of clusters") if progress.enabled else None
    with warnings.catch_warnings(action="ignore"):  # threads share the filters
        run_groups(work, len(samples), n_jobs=n_jobs, total=len(samples) * len(counts), tick=tick)


def compared(
    curves: Mapping[int, Curve], weights: FloatArray, samples: Sequence[IntArray], counts: range
) -> tuple[Counted, ...]:
    """How stable every number of clusters is: the labels of all rows, sample 0, beside those of the halves."""
    n_parts, counted = count_parts(curves[0].parts, weights, counts[-1]), []
    for j, k in enumerate(counts):
        own, agreements, overlaps = curves[0].labels[j], [], []
        for number in sorted(curves.keys() - {0}):
            rows, half = samples[number], curves[number].labels[j]
            agreements.append(agreement(own[rows], half, weights[rows]))
            overlaps.append(best_jaccard(own[rows], half, weights[rows], k))
        counted.append(
            Counted(
                k,
                stability=round(float(np.mean(agreements)), 9),
                standard_error=round(float(np.std(agreements, ddof=1) / np.sqrt(len(agreements))), 9),
                weakest=round(float(np.mean(overlaps, axis=0).min()), 9),
                smallest=float(np.bincount(own, weights, k).min()),
                covers_parts=k >= n_parts,
            )
        )
    return tuple(counted)


def choose_count(counted: Sequence[Counted]) -> tuple[int, int | None, float | None, str]:
    """The largest k that is as stable as the best, the most stable other k, the margin and the reason.

    As stable as the best: within one standard error of it, or within 0.03 if that is more; and each of its clusters is
    found again in halves (mean Jaccard index of 0.85). Numbers below that of the parts are left out, unless halves find
    them again: gaps by chance are not there in a half. If that leaves none, parts do not count.
    """
    allowed = [one for one in counted if one.allowed] or list(counted)
    best = max(allowed, key=lambda one: (one.stability, one.n_clusters))
    tolerance = max(EQUAL, best.standard_error)
    kept = best
    for one in allowed:
        as_stable = one.stability >= best.stability - tolerance
        if one.n_clusters > kept.n_clusters and as_stable and one.weakest >= FOUND_AGAIN:
            kept = one
    k, last = kept.n_clusters, counted[-1].n_clusters
    others = [one for one in allowed if one is not kept]
    parts = min((one.n_clusters for one in counted if one.covers_parts), default=0)
    components = f"{parts}{' or more' * (parts == last)} connected components"
    what = "halves of the rows find these again best"
    if not others and len(counted) > 1:
        what = "every other number has fewer clusters than connected components"
    if kept is not best:
        what = f"the most that halves of the rows find again as well as {best.n_clusters}"
    if kept.stability < POOR:
        what += ", but poorly"
    measured = f"stability {kept.stability:.2f} ± {kept.standard_error:.2f}"
    if counted[0].n_clusters < parts <= k:
        measured = f"{components}, {measured}"
    second, margin, notes = None, None, ""
    if others:
        second = max(others, key=lambda one: (one.stability, one.n_clusters))
        margin = kept.stability - second.stability
        measured += f"; {second.n_clusters} clusters: {second.stability:.2f}"
        if margin <= tolerance:
            notes += f" {second.n_clusters} clusters fit almost as well."
    left_out = max((one for one in counted if one not in allowed), key=lambda one: one.stability, default=kept)
    if left_out.stability > kept.stability:
        fewer = left_out.n_clusters
        notes += (
            f" {fewer} clusters were found again more often ({left_out.stability:.2f}), but there are {components}:"
        )
        notes += f" choose them with n_clusters={fewer}."
    if 2 < k == last:
        notes += f" More than {k} were not tried: raise k_max of select_n_clusters (command line: --k-max)."
    return k, second.n_clusters if second else None, margin, f"{k} clusters: {what} ({measured}).{notes}"


def random_halves(n: int, n_halves: int, random: np.random.RandomState) -> tuple[IntArray, ...]:
    """Numbers of the rows of random halves, both sides of one split after the other."""
    half, found = n // 2, list[IntArray]()
    while len(found) < n_halves:
        order = random.permutation(n)
        found += [np.sort(order[:half]), np.sort(order[half : 2 * half])]
    return tuple(found[:n_halves])
