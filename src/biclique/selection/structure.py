"""Is there structure at all? Two separate modes of the density, or a graph that is cut more easily than references.

References are made of the rows themselves, without structure: Gaussian after a transform of each column, and uniform in
the box of the principal axes.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform
from scipy.special import polygamma
from sklearn.preprocessing import PowerTransformer

from biclique._typing import FloatArray, RandomState
from biclique.fit.given_rows import read_weighted
from biclique.fit.settings import CONSTRAINTS, check_parameters
from biclique.progress import Progress
from biclique.rows.array import Vertices, distinct_rows, drawn
from biclique.runtime.arguments import check_random
from biclique.runtime.readable import Readable
from biclique.runtime.threads import single_threaded_blas
from biclique.selection.one_embedding import OneEmbedding

LEAST_ROWS = 50
"""Below this nothing is tested: four neighbourhoods of 12 rows show no modes."""

MODE_ROWS = 1_000
"""Rows whose density is looked at."""

MODE_NEIGHBORS = 12
"""The density of a row comes from the distance to this neighbour: its logarithm has a standard deviation of 0.3."""

PROMINENCE = 1.25
"""The prominence that counts, in units of what noise gives: about 1 in 100 lines and strips without structure have
more (``docs/decisions/005-number-of-clusters.md``)."""

SPECTRUM_ROWS = 600
"""Rows of the graph that is compared with references: 79 graphs are solved at most."""

SPECTRUM_NEIGHBORS = 10
"""Landmarks of a row in that graph. With 7 fewer public sets show structure; with 12 skewed rows do that have none."""

EIGENVALUES = 5
"""The first and the mean of these are compared: two clusters raise the first, several clusters and curves more."""

REFERENCES = 39
"""Of each kind. By chance, rows like one kind exceed all of that kind once in 40 times; both kinds must be exceeded."""

MOST_COLUMNS = 10_000
"""Of a sparse table, whose rows are made dense for the test."""

FEW_VALUES = 5
"""A column of fewer values holds categories."""

Reference = Callable[[np.random.RandomState], FloatArray]
"""Makes as many rows as there are, at random."""


@dataclass(frozen=True, repr=False)
class Structure(Readable):
    """Whether structure was found (None: not tested), and why."""

    found: bool | None
    reason: str
    prominence: float | None = None  # of the second mode of the log-density
    spectrum: float | None = None  # the mean of the leading five eigenvalues, if references were needed

    def __str__(self) -> str:
        return self.reason


def find_structure(X: Any, *, sample_weight: Any = None, random_state: RandomState = None) -> Structure:
    """Test whether rows have clusters or another structure, or are one cloud.

    A single curved piece, such as an arc, counts as structure. The levels of a category alone do not: without
    structure in the other columns, several categories must go together.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n_samples, n_features)
    sample_weight : array of shape (n_samples,), optional
        How often each row counts.
    random_state : int, RandomState or None
        For the rows that are drawn (at most 1,000), and the references.

    Examples
    --------
    >>> import numpy as np
    >>> from biclique.selection import find_structure
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> find_structure(X, random_state=0).found
    False
    >>> find_structure(np.concatenate([X, X + 9]), random_state=0).found
    True
    """
    check_parameters({"random_state": random_state}, CONSTRAINTS)
    rows, weights = read_weighted(X, sample_weight)
    random = check_random(random_state)
    some = drawn(weights, MODE_ROWS, random)
    with single_threaded_blas(), Progress(False) as progress:
        return structure_of(distinct_rows(rows[some], weights[some]), random, progress)


def structure_of(vertices: Vertices, random: np.random.RandomState, progress: Progress) -> Structure:
    """The same for distinct rows with their weights: structure of the numbers alone, or of all columns together."""
    n_columns = vertices.data.shape[1]
    if sparse.issparse(vertices.data) and n_columns > MOST_COLUMNS:
        most = f"{n_columns} columns of a sparse table, {MOST_COLUMNS} at most"
        return Structure(None, f"Structure was not tested: {most}.")
    X = repeated_rows(vertices.some(drawn(vertices.weights, MODE_ROWS, random)), random)
    if len(X) < LEAST_ROWS:
        return Structure(None, f"Structure was not tested: {len(X)} rows, and {LEAST_ROWS} are needed.")
    X = X[:, np.ptp(X, axis=0) > 0]
    if not X.shape[1]:
        return Structure(False, "No structure was found: all rows are equal.")
    numbers = np.array([len(np.unique(column)) >= FEW_VALUES for column in X.T])
    X = dithered(X, random)
    if numbers.any() and not numbers.all():
        found = _structure_of_rows(X[:, numbers], random, progress)
        if found.found:
            return found
    return _structure_of_rows(X, random, progress)


def _structure_of_rows(X: FloatArray, random: np.random.RandomState, progress: Progress) -> Structure:
    """Two modes of the density, or eigenvalues above those of all references."""
    prominence, needed = mode_prominences(X)[0], least_prominence(len(X))
    if prominence > needed:
        apart = f"{prominence:.1f} apart; {needed:.1f} needed"
        return Structure(True, f"There are separate groups (two peaks of density, {apart}).", prominence)
    some = X if len(X) <= SPECTRUM_ROWS else X[np.sort(random.choice(len(X), SPECTRUM_ROWS, replace=False))]
    own = leading_means(some)
    above = np.ones(len(own), dtype=bool)
    seed = int(random.randint(2**31))
    makers = (("Gaussian", gaussian_reference(some)), ("uniform", uniform_reference(some)))
    for number in range(REFERENCES):
        progress.share("references", number / REFERENCES)
        for place, (name, make) in enumerate(makers):
            other = leading_means(make(np.random.RandomState((seed + 2 * number + place) % 2**32)))
            last = np.flatnonzero(above)[-1]
            above &= other < own
            if not above.any():
                what = f"mean of {EIGENVALUES} eigenvalues" if last else "leading eigenvalue"
                reason = (
                    "No structure was found: random rows without groups look just as grouped as yours "
                    f"({what}: {name} rows {other[last]:.4f}, yours {own[last]:.4f})."
                )
                return Structure(False, reason, prominence, float(own[-1]))
    what = f"mean of {EIGENVALUES} eigenvalues {own[-1]:.3f}" if above[-1] else f"leading eigenvalue {own[0]:.4f}"
    reason = f"Your rows are more grouped, or more curved, than {2 * REFERENCES} random tables ({what})."
    return Structure(True, reason, prominence, float(own[-1]))


# Rows


def repeated_rows(vertices: Vertices, random: np.random.RandomState) -> FloatArray:
    """Rows as often as they count, at most 1,000."""
    data = vertices.data.toarray() if sparse.issparse(vertices.data) else np.asarray(vertices.data, dtype=float)
    weights, total = vertices.weights, float(vertices.weights.sum())
    if total <= MODE_ROWS and (weights == np.round(weights)).all():
        return np.repeat(data, weights.astype(int), axis=0)
    return data[np.sort(random.choice(len(data), min(int(total), MODE_ROWS), p=weights / total))]


def dithered(X: FloatArray, random: np.random.RandomState) -> FloatArray:
    """X with rounded columns spread evenly over the width of their rounding, the least gap of two values.

    A column is rounded if it has at most half as many values as rows. Equal numbers, and the levels of a category,
    would otherwise be modes by themselves.
    """
    X = X.copy()
    for column in X.T:
        values = np.unique(column)
        if len(values) <= len(X) / 2:
            column += np.diff(values).min() * random.uniform(-0.5, 0.5, len(X))
    return X


# Modes of the density


def least_prominence(n: int) -> float:
    """1.25 · 2 √(ψ′(12)) √(2 log(n/12)), the prominence from which on a second mode counts.

    ψ′(12) is the variance of a log-density from 12 neighbours (ψ′ is the trigamma function). n/12 places are
    independent, and the largest and the least of so many differ by 2 √(2 log(n/12)) standard deviations.
    """
    noise = float(polygamma(1, MODE_NEIGHBORS))
    return float(PROMINENCE * 2 * np.sqrt(noise * 2 * np.log(n / MODE_NEIGHBORS)))


def mode_prominences(X: FloatArray) -> FloatArray:
    """For every mode but the highest: its log-density minus that of its saddle, descending; 0 alone if there is none.

    log-density(i) = −d̂ log r_i, r_i the distance to the 12th neighbour, and d̂ the intrinsic dimension, by the maximum
    likelihood of the distances to these neighbours. The saddle of a mode is the highest pass to a higher mode, in steps
    from row to row. A step from i to j is as high as −d̂ log max(r_i, r_j, |x_i − x_j|).
    """
    gaps = squareform(pdist(X))
    near = np.sort(gaps, axis=1)[:, 1 : MODE_NEIGHBORS + 1]  # the row itself is the first
    if not near.any():
        return np.zeros(1)
    near = np.maximum(near, near[near > 0].min())
    radius = near[:, -1]
    mean = float(np.log(radius[:, None] / near[:, :-1]).mean())
    dimension = min(1 / mean, X.shape[1]) if mean > 0 else X.shape[1]
    steps = np.maximum(gaps, np.maximum.outer(radius, radius))
    peak, falls = (-dimension * np.log(radius)).tolist(), [0.0]
    merged = linkage(squareform(steps, checks=False), "single")  # the highest steps first
    for first, second, step, _ in merged.tolist():
        lower, higher = sorted((peak[int(first)], peak[int(second)]))
        falls.append(max(lower + dimension * math.log(step), 0.0))
        peak.append(higher)
    return np.sort(falls)[::-1]


# The spectrum beside references


def leading_means(X: FloatArray) -> FloatArray:
    """The leading eigenvalue of B, and the mean of the leading five: the hypergraph of neighbourhoods at order 2."""
    vertices = distinct_rows(X, np.ones(len(X)))
    with warnings.catch_warnings(action="ignore"):
        embedding = OneEmbedding(vertices.data, vertices.weights, EIGENVALUES + 1, SPECTRUM_NEIGHBORS)
        values = embedding.embedded(EIGENVALUES + 1)[1]
    return np.array([values[0], values.mean()]) if len(values) else np.zeros(2)


def gaussian_reference(X: FloatArray) -> Reference:
    """Makes rows that are Gaussian after a Yeo–Johnson transform of each column, clipped to the column's range."""
    spread = X.std(axis=0)
    scaled = X / spread
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        transform = PowerTransformer(method="yeo-johnson").fit(scaled)
        normal = transform.transform(scaled)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(normal, rowvar=False)))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    low, high = scaled.min(axis=0), scaled.max(axis=0)

    def make(random: np.random.RandomState) -> FloatArray:
        rows = random.normal(size=X.shape) @ root.T
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            back = transform.inverse_transform(rows)
        beyond = np.where(rows > 0, high, low)
        back = np.where(np.isfinite(back), back, beyond)
        return np.asarray(np.clip(back, low, high) * spread)

    return make


def uniform_reference(X: FloatArray) -> Reference:
    """Makes rows that are uniform in the box of the principal axes."""
    middle = X.mean(axis=0)
    axes = np.linalg.svd(X - middle, full_matrices=False)[2]
    turned = (X - middle) @ axes.T
    low, high = turned.min(axis=0), turned.max(axis=0)

    def make(random: np.random.RandomState) -> FloatArray:
        return np.asarray(random.uniform(low, high, (len(X), len(low))) @ axes + middle)

    return make
