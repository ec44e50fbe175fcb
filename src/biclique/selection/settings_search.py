"""The search for settings at a known number of clusters.

Candidates are fitted on at most 1,000 drawn rows and on random halves of them. Those with a cluster of dust are
dropped. The others are judged by three criteria (``criteria.py``), the cut counted twice; the least doubt wins.
Partitions that part no two neighbours come before all others.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, RandomState
from biclique.exceptions import BicliqueError, DataError, ParameterError, SelectionWarning, warn_user
from biclique.fit.plan import Result, choose_kernel
from biclique.fit.settings import SELECTING, Affinity, Auto, Settings, check_parameters
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, RowSource, Vertices, distinct_given, distinct_rows, drawn
from biclique.rows.checks import check_clusters_fit, check_weights
from biclique.runtime.arguments import check_count, check_random
from biclique.runtime.memory import parse_memory_limit
from biclique.runtime.threads import Pulse, single_threaded_blas
from biclique.selection.candidates import Candidate, make_candidates
from biclique.selection.criteria import (
    DIGITS,
    agreement,
    agreements,
    consensus,
    doubts,
    merge,
    neutral_cut,
    neutral_graph,
)
from biclique.selection.halves import fixed_seed, random_halves, run_silently
from biclique.selection.order_path import make_cuts
from biclique.selection.reading import read_rows
from biclique.selection.result import SMALL_MARGIN, Judged, SelectionResult
from biclique.spectral import kmeans
from biclique.spectral.cut import EDGE, least_share

DRAWN_ROWS = 1_000
"""Rows on which candidates are compared."""

HALVES = 4
"""Random halves of these rows: two splits, both sides."""

LEAST_HALF = 20
"""Rows of a half, and twice as many as clusters: below that the stability is left out."""

SAME = 0.99
"""Candidates whose labels agree by more are one."""

SHARES = (2.0, 1.0, 1.0)
"""What the cut, the stability and the consensus count."""

MOST_FITS = 3
"""Fits of all rows: each takes its time."""

KMEANS = "k-means on the rows"

Labels = dict[int, IntArray]
"""Of candidates by their numbers."""


@dataclass(frozen=True)
class Search:
    """What is compared, and on which rows."""

    settings: Settings
    vertices: Vertices
    candidates: tuple[Candidate, ...]
    halves: tuple[IntArray, ...]
    progress: Progress

    @property
    def n_clusters(self) -> int:
        return self.settings.n_groups

    def some(self, numbers: IntArray) -> Vertices:
        """Some of the rows."""
        if not self.vertices.given:
            return self.vertices.some(numbers)
        K = self.vertices.data[numbers][:, numbers]
        return Vertices.as_they_are(K, self.vertices.weights[numbers], given=True)


def select_settings(
    X: Any,
    n_clusters: int,
    *,
    affinity: Affinity = "select",
    gamma: Auto = "select",
    order: Auto = "select",
    sample_weight: Any = None,
    n_neighbors: int = 10,
    neighbor_weights: str = "auto",
    row_normalize: bool | str = "auto",
    assign_labels: str = "kmeans",
    n_init: int = 10,
    candidates: Sequence[Candidate] | None = None,
    n_rows: int = DRAWN_ROWS,
    n_halves: int = HALVES,
    memory_limit: int | str = "auto",
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> SelectionResult:
    """Choose affinity, bandwidth and order for a known number of clusters, without labels.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n_samples, n_features)
        With ``affinity="precomputed"``: similarities of shape (n_samples, n_samples). Only ``order`` is selected then.
    n_clusters : int
        Number of clusters.
    affinity, gamma, order : "select", or as in ``BicliqueSpectralClustering``
        What is not "select" stays as given and restricts the candidates.
    sample_weight : array of shape (n_samples,), optional
        How often each row counts.
    n_neighbors, neighbor_weights, row_normalize : default=10, "auto", "auto"
        These are selected too while they have their default; any other value restricts the candidates.
    candidates : sequence of Candidate, optional
        What is tried; ``make_candidates`` by default.
    n_rows : int, default=1000
        Rows that are drawn to compare candidates on.
    n_halves : int, default=4
        Random halves of these rows for the stability; 0 leaves it out.
    random_state, n_jobs, verbose :
        As in the estimator. Results do not depend on ``n_jobs``.

    Returns
    -------
    SelectionResult
        Ctrl-C ends the search: the best so far is returned, with a ``SelectionWarning``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from biclique.selection import select_settings
    >>> X = make_moons(200, noise=0.05, random_state=0)[0]
    >>> found = select_settings(X, 2, gamma="auto", random_state=0)
    >>> found.judged[0].cut > 0.99
    True
    >>> found.parameters["affinity"]
    'nearest_neighbors'
    """
    given = dict(locals())
    parameters = {name: given[name] for name in given.keys() & (SELECTING.keys() | {"verbose"})}
    check_parameters(parameters, SELECTING)
    check_count("n_rows", n_rows, least=2)
    check_count("n_halves", n_halves, least=0)
    settings = Settings.of(parameters, n_columns=n_clusters)
    if not settings.selecting and candidates is None:
        raise ParameterError("nothing is to be selected: set affinity, gamma or order to 'select'.")
    rows = read_rows(X, settings.unselected)
    weights = check_weights(sample_weight, rows.shape[0])
    check_clusters_fit(n_clusters, rows.shape[0], int((weights > 0).sum()))
    with single_threaded_blas(), Progress(bool(verbose)) as progress:
        return search_settings(settings, ArrayRows(rows, weights), progress, candidates, n_rows, n_halves)


def search_settings(
    settings: Settings,
    source: RowSource,
    progress: Progress,
    candidates: Sequence[Candidate] | None = None,
    n_rows: int = DRAWN_ROWS,
    n_halves: int = HALVES,
) -> SelectionResult:
    """Choose what ``settings`` leave to be selected."""
    seed = fixed_seed(settings.random_state)
    settings = replace(settings, random_state=seed)
    vertices = draw_vertices(settings, source, n_rows, np.random.RandomState(seed))
    if candidates is None:
        candidates = make_candidates(
            settings,
            vertices.n,
            graphs=source.in_memory and source.device is None and settings.holding.gram == "auto",
            sparse=vertices.given and bool(sparse.issparse(vertices.data)),
        )
    if not candidates:
        raise ParameterError(
            f"no candidate goes with the other parameters: ask for {settings.selecting[0]} by name, or leave the other "
            "parameters at their defaults."
        )
    # Candidates are few rows, stored; how all rows are held is the fit's affair.
    inner = replace(settings.unselected, holding=replace(settings.holding, gram="auto", device=None), n_jobs=1)
    halves = split_halves(vertices.n, n_halves, settings.n_groups, np.random.RandomState(seed))
    return run_search(Search(inner, vertices, tuple(candidates), halves, progress), settings.n_jobs)


def draw_vertices(settings: Settings, source: RowSource, n_rows: int, random: np.random.RandomState) -> Vertices:
    """Distinct rows of a draw with their weights; of a given matrix, the rows and columns."""
    kernel = settings.unselected.kernel
    if not kernel.given:
        return distinct_rows(*source.draw(n_rows, random))
    if kernel.neighbors:
        raise DataError(
            f"order='select' compares fits of some rows, and a graph of distances (affinity={kernel.affinity!r}) has "
            "no such: pass the rows with affinity='nearest_neighbors', or give the order."
        )
    K, weights = source.held, source.weights
    if weights is None:
        weights = np.ones(K.shape[0])
    if not sparse.issparse(K):  # of a sparse graph, few rows would be hardly connected
        chosen = drawn(weights, n_rows, random)
        K, weights = np.ascontiguousarray(K[np.ix_(chosen, chosen)]), weights[chosen]
    return distinct_given(K, weights, parse_memory_limit(settings.holding.memory_limit))


def split_halves(n: int, n_halves: int, n_clusters: int, random: np.random.RandomState) -> tuple[IntArray, ...]:
    """Numbers of the rows of random halves, both sides of one split after the other; none if there are too few rows."""
    return random_halves(n, n_halves, random) if n // 2 >= max(LEAST_HALF, 2 * n_clusters) else ()


# Fits


def fit_candidates(search: Search, numbers: Sequence[int], vertices: Vertices) -> Labels:
    """Labels of the candidates of one similarity: K is made once, and orders start from each other.

    A candidate that cannot be fitted has none.
    """
    settings = search.candidates[numbers[0]].applied(search.settings)
    orders = list(dict.fromkeys(search.candidates[i].order for i in numbers))
    found: Labels = {}
    try:
        cuts = make_cuts(settings, vertices, orders, Progress(False))
    except BicliqueError:
        return found
    for order in orders:
        own = [i for i in numbers if search.candidates[i].order == order]
        try:
            fits = cuts.at(order, [search.candidates[i].row_normalize for i in own])
        except BicliqueError:
            continue
        found |= {i: fit.labels for i, fit in zip(own, fits, strict=True)}
    return found


def kmeans_labels(search: Search, vertices: Vertices) -> Labels:
    """Labels of k-means on the rows, under the number after the last candidate's."""
    rows = vertices.data.toarray() if sparse.issparse(vertices.data) else np.asarray(vertices.data, dtype=float)
    found = kmeans(rows, vertices.weights, search.n_clusters, n_init=10, random_state=search.settings.random_state)
    return {len(search.candidates): found.contiguous().labels}


class Fits:
    """Labels on all rows and on every half, filled by threads."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.full: Labels = {}
        self.halves: list[Labels] = [{} for _ in search.halves]
        self.interrupted = False

    def run(self, n_jobs: int | None) -> None:
        """Fit everything; Ctrl-C keeps what is done."""
        search, lock = self.search, threading.Lock()
        families: dict[tuple[str, str], list[int]] = {}
        for i, one in enumerate(search.candidates):
            families.setdefault((one.family, str(one.gamma)), []).append(i)
        jobs: list[tuple[Labels, Callable[[], Labels]]] = []
        for place, numbers in [(self.full, None), *zip(self.halves, search.halves, strict=True)]:
            some = search.vertices if numbers is None else search.some(numbers)
            for family in families.values():
                jobs.append((place, lambda family=family, some=some: fit_candidates(search, family, some)))  # type: ignore[misc]
            if not search.vertices.given:
                jobs.append((place, lambda some=some: kmeans_labels(search, some)))  # type: ignore[misc]

        def work(number: int, pulse: Pulse) -> None:
            place, fit = jobs[number]
            found = fit()
            with lock:
                place.update(found)
            pulse()

        self.interrupted = not run_silently(work, len(jobs), len(jobs), n_jobs, search.progress, "candidates")
        if self.interrupted and not self.full:
            raise KeyboardInterrupt


# The choice


def run_search(search: Search, n_jobs: int | None) -> SelectionResult:
    """Fit all candidates, and choose."""
    k, vertices = search.n_clusters, search.vertices
    if k < 2 or vertices.n <= k:
        what = "one cluster is asked for" if k < 2 else f"there are only {vertices.n} distinct rows"
        judged = tuple(
            Judged(one, one.name, one.family, doubt=0.0 if i == 0 else None, dropped="" if i == 0 else "not tried")
            for i, one in enumerate(search.candidates)
        )
        reason = f"{search.candidates[0].name}: {what}, so there is nothing to compare."
        labels = np.zeros(vertices.n, dtype=np.intp) if k < 2 else np.arange(vertices.n)
        return SelectionResult(
            judged,
            search.candidates[0],
            None,
            None,
            reason,
            vertices.n,
            k,
            _gamma(search, search.candidates[0]),
            labels,
        )
    fits = Fits(search)
    fits.run(n_jobs)
    result = judge(search, fits)
    if fits.interrupted:
        warn_user(f"the search was interrupted, and the best so far is taken: {result.reason}", SelectionWarning)
    return result


def judge(search: Search, fits: Fits) -> SelectionResult:
    """The criteria of every candidate, their ranks, and the choice."""
    vertices, k = search.vertices, search.n_clusters
    weights, names = vertices.weights, [one.name for one in search.candidates]
    fitted = sorted(i for i in fits.full if i < len(search.candidates))
    if not fitted:
        raise DataError(
            f"none of {len(search.candidates)} candidates can be fitted to these rows: ask for affinity, gamma and "
            "order by name to see why."
        )
    smallest = {i: float(np.bincount(fits.full[i], weights, k).min()) for i in fits.full}
    needed = least_size(weights, k)
    able = [i for i in fitted if smallest[i] >= needed]
    told = ""
    if not able:
        most = max(smallest[i] for i in fitted)
        able = [i for i in fitted if smallest[i] == most]
        told = f" Every candidate has a cluster below {needed:.1f} rows; the largest smallest one has {most:g}."
    graph = neutral_graph(vertices)
    everyone = sorted(fits.full)
    cut = {i: neutral_cut(graph, fits.full[i]) for i in everyone}
    stability = {i: _stability(fits, i, search) for i in everyone}
    pairs = agreements([fits.full[i] for i in able], weights)
    shared = dict(zip(able, consensus(pairs, [search.candidates[i].family for i in able]).tolist(), strict=True))
    first = {i: able[j] for i, j in zip(able, merge(pairs, SAME).tolist(), strict=True)}
    groups = {i: [j for j in able if first[j] == i] for i in able if first[i] == i}
    # The same clusters: the settings that give them most reliably stand for them.
    best = {max(group, key=lambda j: (round(stability[j] or 0.0, 9), -j)): group for group in groups.values()}
    stands_for = {j: i for i, group in best.items() for j in group}
    leaders = sorted(best)
    one_edge, one_row = 2 / max(graph.nnz, 2), 1 / vertices.n
    used = [0, 1, 2] if search.halves else [0, 2]  # without halves nothing is known about the stability
    criteria = [np.array([values.get(i) or 0.0 for i in leaders]) for values in (cut, stability, shared)]
    least = (one_edge, one_row, one_row)
    found = doubts([criteria[j] for j in used], [SHARES[j] for j in used], [least[j] for j in used]).tolist()
    # At a tie the better cut, then the first.
    order = sorted(
        range(len(leaders)),
        key=lambda j: (
            not parts_nothing(cut[leaders[j]]),
            round(found[j], 12),
            -round(cut[leaders[j]], 9),
            leaders[j],
        ),
    )
    doubt_of = {leaders[j]: float(found[j]) for j in range(len(leaders))}
    chosen = leaders[order[0]]
    second = leaders[order[1]] if len(order) > 1 else None
    margin = None if second is None else doubt_of[second] / doubt_of[chosen]

    def judged(i: int) -> Judged:
        kmeans = i == len(search.candidates)
        dropped = "only compared with" if kmeans else ""
        if not kmeans and i not in fits.full:
            dropped = "not tried" if fits.interrupted else "cannot be fitted"
        elif not kmeans and i not in able:
            dropped = f"a cluster of {smallest[i]:g} rows, {needed:.1f} needed"
        leader = stands_for.get(i, i)
        return Judged(
            None if kmeans else search.candidates[i],
            KMEANS if kmeans else names[i],
            KMEANS if kmeans else search.candidates[i].family,
            smallest.get(i),
            cut.get(i),
            stability.get(i),
            shared.get(i),
            doubt_of.get(i),
            "" if leader == i else names[leader],
            dropped,
        )

    ranked = [leaders[j] for j in order]
    others = [i for i in range(len(names)) if i not in doubt_of] + [i for i in everyone if i >= len(names)]
    others.sort(key=lambda i: i not in stands_for)
    return SelectionResult(
        tuple(judged(i) for i in [*ranked, *others]),
        search.candidates[chosen],
        None if second is None else search.candidates[second],
        margin,
        _reason(names, chosen, second, margin, len(names), len(leaders), cut, stability, shared, doubt_of) + told,
        vertices.n,
        k,
        _gamma(search, search.candidates[chosen]),
        fits.full[chosen],
        fits.interrupted,
    )


def parts_nothing(cut: float) -> bool:
    """Whether no edge of the neutral graph leads from one cluster to another.

    Such clusters are parts of a graph that no candidate made. Fits of halves may miss them, because halves have fewer
    neighbours. That says something about the settings, but nothing against the clusters.
    """
    return round(cut, DIGITS) >= 1


def least_size(weights: FloatArray, n_clusters: int) -> float:
    """The weight below which a cluster is dust: that of √(n/k) rows, rounded down to whole rows.

    The unit is the lightest row. No size lies between two numbers of rows, and √(n/k) is no sharper than that.
    """
    exact = least_share(weights, n_clusters) * float(weights.sum()) / (1 - EDGE)
    unit = float(weights.min())
    whole = float(np.floor(exact / unit * (1 + 1e-9))) * unit
    return (1 - EDGE) * (whole if whole > 0 else exact)


def _stability(fits: Fits, number: int, search: Search) -> float | None:
    """The mean agreement with fits of halves; None without any."""
    found = [
        agreement(fits.full[number][rows], half[number], search.vertices.weights[rows])
        for rows, half in zip(search.halves, fits.halves, strict=True)
        if number in half
    ]
    return float(np.mean(found)) if found else None


def _reason(
    names: list[str],
    chosen: int,
    second: int | None,
    margin: float | None,
    n_candidates: int,
    n_partitions: int,
    cut: dict[int, float],
    stability: dict[int, float | None],
    shared: dict[int, float],
    doubt: dict[int, float],
) -> str:
    """The choice in a sentence or two."""
    kept = stability[chosen]
    known = "" if kept is None else f", stability {kept:.2f}"
    rival = min(doubt, key=lambda i: (round(doubt[i], 12), i != chosen))
    if rival != chosen and parts_nothing(cut[chosen]) and not parts_nothing(cut[rival]):
        return (
            f"{names[chosen]}: it parts no neighbours (cut 1{known}, consensus {shared[chosen]:.2f}). Of "
            f"{n_partitions} different partitions by {n_candidates} candidates, {names[rival]} leaves less doubt, "
            f"{doubt[rival]:.3g} against {doubt[chosen]:.3g}, but parts some (cut {cut[rival]:.4f}): look at both."
        )
    told = (
        f"{names[chosen]}: least doubt of {n_partitions} different partitions by {n_candidates} candidates (cut "
        f"{cut[chosen]:.3f}{known}, consensus {shared[chosen]:.2f})"
    )
    if second is None or margin is None:
        return f"{told}; all candidates agree." if n_partitions == 1 else f"{told}."
    narrow = "; a small margin, so look at both" if margin <= SMALL_MARGIN else ""
    return f"{told}, {doubt[chosen]:.3g} against {doubt[second]:.3g} of {names[second]}{narrow}."


def _gamma(search: Search, candidate: Candidate) -> float | None:
    """γ of a candidate on the rows that were looked at; None if it has none of its own."""
    settings = candidate.applied(search.settings)
    if settings.kernel.neighbors or settings.kernel.given:
        return None
    return choose_kernel(settings, search.vertices, check_random(settings.random_state)).gamma


# All rows


def fit_without_dust(
    found: SelectionResult, fit: Callable[[Candidate, str], Result], weights: FloatArray | None
) -> tuple[SelectionResult, Result]:
    """The fit of all rows by the best candidate, or by the next one if that leaves a cluster of dust.

    If none of the first few does: the one whose smallest cluster is largest. Only its warnings are shown.
    """
    told, best = "", None
    for candidate in found.ranked[:MOST_FITS]:
        now = found if candidate == found.chosen else found.taking(candidate, told)
        with warnings.catch_warnings(record=True) as messages:
            warnings.simplefilter("always")
            result = fit(candidate, now.reason)
        share, needed = _smallest_share(result, weights, found.n_clusters)
        if best is None or share > best[0]:
            best = share, now, result, messages
        if share >= needed:
            break
        told = told or (
            f"the best candidate, {candidate.name}, leaves a cluster of {share:.2%} of all rows ({needed:.2%} needed), "
            "so the next is taken."
        )
    if best is None:
        raise ValueError("a search gives at least one candidate")
    for message in best[3]:
        warnings.warn_explicit(message.message, message.category, message.filename, message.lineno)
    if told:
        warn_user(told, SelectionWarning)
    return best[1], best[2]


def _smallest_share(result: Result, weights: FloatArray | None, n_clusters: int) -> tuple[float, float]:
    """The share of the smallest cluster of all rows, and the least share that is not dust."""
    labels = result.labels
    if labels is None or n_clusters < 2 or result.n_vertices <= n_clusters:
        return 1.0, 0.0
    if result.clusters is not None:
        return result.clusters.smallest, result.clusters.least
    weights = np.ones(len(labels)) if weights is None else weights
    counted = weights > 0
    sizes = np.bincount(labels[counted], weights[counted], n_clusters)
    return float(sizes.min() / sizes.sum()), least_size(weights[counted], n_clusters) / float(sizes.sum())
