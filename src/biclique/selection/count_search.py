"""The search for the number of clusters: the largest one that random halves of the rows find again.

One embedding of at most 1,000 drawn rows gives labels for every k. Ten random halves have an embedding of their own
each. The stability of k is the mean agreement of both on the rows of a half. There are no fewer clusters than connected
components of the hypergraph of neighbourhoods that are large enough for one.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from biclique._typing import IntArray, RandomState
from biclique.exceptions import ParameterError, SelectionWarning, StructureWarning, warn_user
from biclique.fit.settings import CONSTRAINTS, Settings, check_parameters
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, RowSource, Vertices, distinct_rows
from biclique.rows.checks import check_weights
from biclique.runtime.arguments import check_count, fixed_seed
from biclique.runtime.threads import Pulse, run_groups, single_threaded_blas
from biclique.selection.count_result import Counted, CountResult
from biclique.selection.criteria import agreement, best_jaccard
from biclique.selection.given_rows import read_rows
from biclique.selection.one_embedding import OneEmbedding, count_parts
from biclique.selection.structure import Structure, structure_of

DRAWN_ROWS = 1_000
"""Rows that are looked at."""

MOST_CLUSTERS = 20
"""The default of ``k_max``."""

HALVES = 10
"""Random halves: five splits, both sides. The standard error of their mean is known to about a quarter."""

ROWS_PER_CLUSTER = 4
"""Drawn rows for each cluster at the least, so that a half has two."""

EQUAL = 0.03
"""Stabilities that differ by less count as equal: one or two rows in a hundred in other clusters cost so much."""

FOUND_AGAIN = 0.85
"""The Jaccard index from which on Hennig (2007) calls a cluster highly stable."""

Curve = list[IntArray]
"""Labels for every number of clusters that is tried."""


def select_n_clusters(
    X: Any,
    k_max: int = MOST_CLUSTERS,
    *,
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
    sample_weight : array of shape (n_samples,), optional
        How often each row counts.
    n_rows : int, default=1000
        Rows that are drawn; time grows with its cube.
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
    check_parameters({"random_state": random_state, "n_jobs": n_jobs}, CONSTRAINTS)
    settings = Settings.of({"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}, n_columns=1)
    rows = read_rows(X, settings)
    source = ArrayRows(rows, check_weights(sample_weight, rows.shape[0]))
    with single_threaded_blas(), Progress.of(verbose) as progress:
        found = search_count(settings, source, progress, k_max, n_rows=n_rows, n_halves=n_halves)
    warn_about_structure(found)
    return found


def warn_about_structure(found: CountResult) -> None:
    """Say it if no structure was found."""
    if found.has_structure is False:
        warn_user(f"{found.structure.reason} n_clusters={found.n_clusters} is returned all the same.", StructureWarning)


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
    search = CountSearch(vertices, k_max, random_halves(vertices.n, n_halves, random), progress)
    search.run(settings.n_jobs)
    structure = Structure(None, "Structure was not tested: the search was interrupted.")
    if not search.interrupted:
        try:
            structure = structure_of(vertices, np.random.RandomState(seed), progress)
        except KeyboardInterrupt:
            search.interrupted = True
    result = replace(search.chosen(), structure=structure)
    if search.interrupted:
        warn_user(f"the search was interrupted, and the best so far is taken: {result.reason}", SelectionWarning)
    return result


class CountSearch:
    """Labels for every k on all drawn rows and on every half, filled by threads."""

    def __init__(self, vertices: Vertices, k_max: int, halves: Sequence[IntArray], progress: Progress) -> None:
        self.vertices, self.halves, self.progress = vertices, tuple(halves), progress
        self.k_max = k_max
        self.counts = range(2, min(k_max, vertices.n // ROWS_PER_CLUSTER) + 1)
        self.full: Curve = []
        self.n_parts = 1
        self.of_halves: dict[int, Curve] = {}
        self.interrupted = False

    def run(self, n_jobs: int | None) -> None:
        """Fit everything; Ctrl-C keeps what is done, if that is enough for a choice."""
        if not self.counts:
            return
        lock = threading.Lock()

        def work(number: int, pulse: Pulse) -> None:
            rows = None if number == 0 else self.halves[number - 1]
            some = self.vertices if rows is None else self.vertices.some(rows)
            embedding = OneEmbedding(some.data, some.weights, self.counts[-1])
            found = curve(embedding, self.counts, pulse)
            with lock:
                if rows is None:
                    self.full = found
                    self.n_parts = count_parts(embedding.parts, some.weights, self.counts[-1])
                else:
                    self.of_halves[number - 1] = found

        jobs = len(self.halves) + 1
        total = jobs * len(self.counts)
        self.interrupted = not run_silently(work, jobs, total, n_jobs, self.progress, "numbers of clusters")
        if self.interrupted and (not self.full or len(self.of_halves) < 2):
            raise KeyboardInterrupt

    def chosen(self) -> CountResult:
        """The curve and the choice."""
        vertices, weights = self.vertices, self.vertices.weights
        if not self.counts:
            k = max(min(2, self.k_max, vertices.n), 1)
            what = f"k_max is {self.k_max}" if self.k_max < 2 else f"there are only {vertices.n} distinct rows"
            reason = f"{k} cluster{'s' if k > 1 else ''}: {what}, so there is nothing to compare."
            labels = np.arange(vertices.n) % k
            return CountResult((), k, None, None, reason, vertices.n, labels, Structure(None, ""))
        counted = []
        for j, k in enumerate(self.counts):
            own = self.full[j]
            agreements, overlaps = [], []
            for number in sorted(self.of_halves):
                rows, half = self.halves[number], self.of_halves[number][j]
                agreements.append(agreement(own[rows], half, weights[rows]))
                overlaps.append(best_jaccard(own[rows], half, weights[rows], k))
            counted.append(
                Counted(
                    k,
                    stability=float(np.mean(agreements)),
                    standard_error=float(np.std(agreements, ddof=1) / np.sqrt(len(agreements))),
                    weakest=float(np.mean(overlaps, axis=0).min()),
                    smallest=float(np.bincount(own, weights, k).min()),
                    needed=float(np.sqrt(weights.sum() / k)),
                    covers_parts=k >= self.n_parts,
                )
            )
        k, second, margin, reason = choose_count(counted)
        labels, untested = self.full[k - 2], Structure(None, "")
        return CountResult(
            tuple(counted), k, second, margin, reason, vertices.n, labels, untested, interrupted=self.interrupted
        )


def curve(embedding: OneEmbedding, counts: Sequence[int], pulse: Pulse | None = None) -> Curve:
    """Labels for every number of clusters."""
    found = []
    for k in counts:
        found.append(embedding.labels(k))
        if pulse is not None:
            pulse()
    return found


def choose_count(counted: Sequence[Counted]) -> tuple[int, int | None, float | None, str]:
    """The largest k that is as stable as the best, the most stable other k, the margin and the reason.

    As stable as the best: within one standard error of it, or within 0.03 if that is more; and each of its clusters is
    found again in halves (mean Jaccard index of 0.85). Numbers with a cluster below √(n/k) rows, or with fewer clusters
    than parts, are left out. If that leaves none, parts do not count; if that leaves none, the number whose smallest
    cluster comes nearest to √(n/k) is taken.
    """
    allowed = [one for one in counted if one.allowed] or [one for one in counted if one.large_enough]
    if not allowed:
        one = max(counted, key=lambda one: (one.smallest / one.needed, -one.n_clusters))
        reason = (
            f"{one.n_clusters} clusters: every number leaves a cluster too small to count, and this one comes nearest "
            f"(smallest cluster {one.smallest:g} rows, {one.needed:.1f} needed)."
        )
        return one.n_clusters, None, None, reason
    stability = {one.n_clusters: round(one.stability, 9) for one in allowed}
    best = max(allowed, key=lambda one: (stability[one.n_clusters], one.n_clusters))
    tolerance = max(EQUAL, round(best.standard_error, 9))
    kept = best
    for one in allowed:
        as_stable = stability[one.n_clusters] >= stability[best.n_clusters] - tolerance
        found_again = round(one.weakest, 9) >= FOUND_AGAIN
        if one.n_clusters > kept.n_clusters and as_stable and found_again:
            kept = one
    k = kept.n_clusters
    reason = f"{k} clusters: stability {stability[k]:.2f} ± {kept.standard_error:.2f}"
    parts = min((one.n_clusters for one in counted if one.covers_parts), default=0)
    if k == best.n_clusters and counted[0].n_clusters < parts <= k:
        reason += f", the best of {parts} to {counted[-1].n_clusters} (there are {parts} connected components)"
    elif k == best.n_clusters:
        reason += f", the best of {counted[0].n_clusters} to {counted[-1].n_clusters}"
    else:
        reason += f", the most clusters that are as stable as {best.n_clusters} ({stability[best.n_clusters]:.2f})"
    others = [other for other in stability if other != k]
    if not others:
        return k, None, None, f"{reason}."
    second = max(others, key=lambda other: (stability[other], other))
    margin = stability[k] - stability[second]
    narrow = "; a small margin, so look at both" if margin <= tolerance else ""
    return k, second, margin, f"{reason}, {margin:+.2f} from {second} clusters{narrow}."


def random_halves(n: int, n_halves: int, random: np.random.RandomState) -> tuple[IntArray, ...]:
    """Numbers of the rows of random halves, both sides of one split after the other."""
    half, found = n // 2, list[IntArray]()
    while len(found) < n_halves:
        order = random.permutation(n)
        found += [np.sort(order[:half]), np.sort(order[half : 2 * half])]
    return tuple(found[:n_halves])


def run_silently(
    work: Callable[[int, Pulse], None], n_fits: int, total: int, n_jobs: int | None, progress: Progress, what: str
) -> bool:
    """Do every piece of work in threads, without a warning; False if Ctrl-C ended it."""
    pools = ThreadpoolController()

    def alone(number: int, pulse: Pulse) -> None:
        with pools.limit(limits=1):  # OpenMP counts threads by the thread that asks
            work(number, pulse)

    tick = None
    if progress.enabled:

        def tick(share: float) -> None:
            progress.share(what, share)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # threads share the filters
            run_groups(alone, n_fits, n_jobs=n_jobs, total=total, tick=tick)
    except KeyboardInterrupt:
        return False
    return True
