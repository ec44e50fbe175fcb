"""Naive loops written straight from the definitions, for small sizes; the fast paths are tested against these."""

from __future__ import annotations

import csv
import io
import re
from contextlib import suppress
from datetime import date, datetime
from hashlib import blake2b
from itertools import permutations, product

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans


def gram_tensor(K, m):
    """The biclique kernel of every m-tuple of points: Σ_γ Σ_ν κ(x_γ, t_ν) over two halves of m/2 points."""
    n, h = len(K), m // 2
    tensor = np.zeros((n,) * m)
    for index in product(range(n), repeat=m):
        for i in index[:h]:
            for j in index[h:]:
                tensor[index] += K[i, j]
    return tensor


def contracted(tensor):
    """Sum over every mode but the first of each half."""
    m = tensor.ndim
    n, h = len(tensor), m // 2
    out = np.zeros((n, n))
    for index in product(range(n), repeat=m):
        out[index[0], index[h]] += tensor[index]
    return out


def contracted_gram(K, m):
    """K^(m)/n^(m−2) = K + (c/n)(δ1ᵀ + 1δᵀ) + (c²/n²) ρ 11ᵀ with c = (m − 2)/2, for any real m."""
    n, c = len(K), (m - 2) / 2
    degrees = K.sum(axis=1)
    return K + c / n * (degrees[:, None] + degrees[None, :]) + c**2 / n**2 * K.sum()


def lloyd(X, w, centres):
    """Lloyd steps until no label moves: the centres."""
    before = None
    while True:
        labels = [min(range(len(centres)), key=lambda j, x=x: sum((x - centres[j]) ** 2)) for x in X]
        if labels == before:
            return centres
        own = [[i for i, label in enumerate(labels) if label == j] for j in range(len(centres))]
        centres = np.array([sum(w[i] * X[i] for i in rows) / sum(w[rows]) for rows in own])
        before = labels


def algorithm_1(K, m):
    """Eigenvalues and eigenvectors, descending, of D_m^(−1/2) K^(m) D_m^(−1/2), the paper's Algorithm 1."""
    Km = contracted_gram(K, m)
    root = np.sqrt(Km.sum(axis=1))
    values, vectors = np.linalg.eigh(Km / root[:, None] / root[None, :])
    return values[::-1], vectors[:, ::-1]


def modularity(K):
    """The same for K − δδᵀ/ρ, the limit m = ∞ without its trivial pair."""
    degrees = K.sum(axis=1)
    values, vectors = np.linalg.eigh(K - np.outer(degrees, degrees) / K.sum())
    return values[::-1], vectors[:, ::-1]


def projector(V):
    """The orthogonal projector onto the span of columns."""
    Q = np.linalg.qr(V)[0]
    return Q @ Q.T


def partition(embedding, k):
    """Plain k-means on rows, from many starts."""
    return KMeans(k, n_init=50, random_state=0, tol=1e-10).fit_predict(embedding)


def neighbor_gamma(X, weights, factor=0.2, neighbor=7):
    """γ = factor / weighted median of the squared distance to the 7th neighbour, by loops over distinct rows."""
    values = []
    for i, x in enumerate(X):
        others = sorted(float(sum((x - y) ** 2)) for j, y in enumerate(X) if j != i)
        values += [others[min(neighbor, len(others)) - 1]] * int(weights[i])
    return factor / float(np.median(values))


def extended(K, cross, m, weights, u, values):
    """The closed-form embedding of new points, one loop a sum."""
    n_new, n = cross.shape
    degrees = np.array([sum(weights[j] * K[i, j] for j in range(n)) for i in range(n)])
    total = sum(weights[i] * degrees[i] for i in range(n))
    mean = total / sum(weights)
    out = np.zeros((n_new, len(values)))
    for a in range(n_new):
        degree = sum(weights[j] * cross[a, j] for j in range(n))
        shrunken = 2 / m * degree + (1 - 2 / m) * mean
        for c, value in enumerate(values):
            first = sum(weights[j] * cross[a, j] * u[j, c] for j in range(n))
            second = degree * sum(weights[j] * degrees[j] * u[j, c] for j in range(n)) / total
            out[a, c] = (first - second) / (value * np.sqrt(shrunken))
    return out


def order_2_like_sklearn(K, k):
    """scikit-learn's embedding at order 2: the diagonal zeroed, rows divided by √degree."""
    K = K - np.diag(np.diagonal(K))
    vectors = algorithm_1(K, 2)[1][:, :k]
    return vectors / np.sqrt(K.sum(axis=1))[:, None]


def symmetric_tensor(K, m):
    """κ_s of every m-tuple of points: a quarter of Σ_i Σ_j κ(x_i, x_j) over all ordered pairs, equal ones too."""
    n = len(K)
    tensor = np.zeros((n,) * m)
    for index in product(range(n), repeat=m):
        tensor[index] = sum(K[i, j] for i in index for j in index) / 4
    return tensor


def kernel_kmeans_objective(features, labels, weights):
    """J = Σ_j Σ_{i∈j} w_i |ψ_i − m_j|² with weighted means m_j, from explicit features."""
    total = 0.0
    for j in set(labels.tolist()):
        inside = labels == j
        mean = np.average(features[inside], axis=0, weights=weights[inside])
        total += sum(w * np.sum((x - mean) ** 2) for x, w in zip(features[inside], weights[inside], strict=True))
    return total


def k_way_cut(A, labels, literal=False):
    """Σ_j cut_j/vol_j of a weighted graph A; ``literal`` sums NCut(V_j, V∖V_j), dividing by the rest's volume too."""
    degrees = A.sum(axis=1)
    total = 0.0
    for j in set(labels.tolist()):
        inside = labels == j
        cut = sum(A[i, b] for i in np.flatnonzero(inside) for b in np.flatnonzero(~inside))
        total += cut / degrees[inside].sum()
        if literal:
            total += cut / degrees[~inside].sum()
    return total


def literal_multiway_objective(K, m, labels, weights):
    """The paper's J' read literally: the inner sums run over points of the cluster only."""
    h = m // 2
    total = 0.0
    for j in set(labels.tolist()):
        inside = np.flatnonzero(labels == j)
        s = weights[inside].sum()

        def kappa(first, second):
            return sum(K[x, y] for x in first for y in second)

        for i in inside:
            for rest in product(inside, repeat=h - 1):
                total += weights[i] * kappa((i, *rest), (i, *rest))
        for i, b in product(inside, repeat=2):
            for rest in product(inside, repeat=h - 1):
                for other in product(inside, repeat=h - 1):
                    total -= weights[i] * weights[b] * kappa((i, *rest), (b, *other)) / s
    return total


def literal_tensor_objective(tensor, labels, weights):
    """The paper's weighted tensor k-means read literally: the inner sums run over points of the cluster only."""
    m = tensor.ndim
    total = 0.0
    for j in set(labels.tolist()):
        inside = np.flatnonzero(labels == j)
        s = weights[inside].sum()
        for i in inside:
            for rest in product(inside, repeat=m - 2):
                total += weights[i] * tensor[(i, i, *rest)]
                for b in inside:
                    total -= weights[i] * weights[b] * tensor[(i, b, *rest)] / s
    return total


# Hypergraphs: an edge is a list of vertex numbers, repeats allowed


def expansion_matrix(edges, weights, n, expansion):
    """A by loops over pairs of places: a place with itself only in the star; c(e) as each expansion defines it."""
    A = np.zeros((n, n))
    for edge, w in zip(edges, weights, strict=True):
        size = len(edge)
        for a in range(size):
            for b in range(size):
                if expansion == "star":
                    A[edge[a], edge[b]] += w / size
                elif a != b:
                    A[edge[a], edge[b]] += w / (size - 1) if expansion == "normalized_clique" else w
    return A


def symmetric_edge_tensor(edges, weights, n, m):
    """w(e) at every arrangement of e's vertices; equal edges add up."""
    tensor = np.zeros((n,) * m)
    for edge, w in zip(edges, weights, strict=True):
        for index in set(permutations(edge)):
            tensor[index] += w
    return tensor


def hypergraph_cut(edges, weights, inside, coefficient):
    """Σ_e c(e) |e ∩ V₁| |e ∖ V₁| by counting."""
    total = 0.0
    for edge, w in zip(edges, weights, strict=True):
        here = sum(1 for v in edge if inside[v])
        total += coefficient(w, len(edge)) * here * (len(edge) - here)
    return total


def one_vertex_cut(pair_weights, v):
    """What cutting one vertex off an edge costs in a graph of pair weights."""
    return sum(pair_weights[v, u] for u in range(len(pair_weights)) if u != v)


def distance_to_span(point, others):
    """The distance of a point to the affine span of others, by least squares."""
    base, directions = others[0], (others[1:] - others[0]).T
    if not directions.size:
        return float(np.linalg.norm(point - base))
    solution = np.linalg.lstsq(directions, point - base, rcond=None)[0]
    return float(np.linalg.norm(point - base - directions @ solution))


def spread_out_rows(rows, count, tie=1e-6, nothing=1e-9):
    """Rows that are farthest from the span of those before, the first of tied ones; then from those rows themselves."""
    found, rest = [], np.array(rows[:, :count])
    for _ in range(min(count, rest.shape[1])):
        lengths = np.linalg.norm(rest, axis=1)
        if lengths.max() <= nothing * np.linalg.norm(rows[:, :count], axis=1).max():
            break
        found.append(next(i for i, length in enumerate(lengths) if length**2 >= (1 - tie) * lengths.max() ** 2))
        unit = rest[found[-1]] / lengths[found[-1]]
        rest = np.array([row - (row @ unit) * unit for row in rest])
    while len(found) < count:
        gaps = [min((np.linalg.norm(row - rows[i]) for i in found), default=np.inf) for row in rows]
        found.append(int(np.argmax(gaps)))
    return found


def nearest_rows(y, X, own=None):
    """Numbers of the rows of X by (distance to y, number), the row ``own`` before all others, and the distances."""
    gaps = [float(sum((float(a) - float(b)) ** 2 for a, b in zip(y, x, strict=True))) ** 0.5 for x in X]
    order = sorted(range(len(X)), key=lambda j: (j != own, gaps[j], j))
    return order, gaps


def neighbor_affinity(X, n_neighbors):
    """K_ij = (A_ij + A_ji)/2 over the n_neighbors nearest rows of each row, itself counted."""
    n = len(X)
    near = [nearest_rows(x, X, own=i)[0][:n_neighbors] for i, x in enumerate(X)]
    return np.array([[((j in near[i]) + (i in near[j])) / 2 for j in range(n)] for i in range(n)])


def neighbor_cross(y, X, n_neighbors):
    """κ(y, x_j) = (a_j + b_j)/2: the nearest rows of y, and the rows that would have y among theirs."""
    k = min(n_neighbors, len(X))
    order, gaps = nearest_rows(y, X)
    row = np.zeros(len(X))
    for j in range(len(X)):
        theirs, distances = nearest_rows(X[j], X, own=j)
        row[j] = ((j in order[:k]) + (gaps[j] <= distances[theirs[k - 1]])) / 2
    return row


# The hypergraph of neighbourhoods: one edge for every landmark


def distinct_landmarks(X):
    """The distinct rows, sorted by their first column, then the second and so on."""
    return np.array(sorted({tuple(float(value) for value in x) for x in X}))


def canonical_order(X, tie=1e-9):
    """Rows by distance from the mean, ties by that from weighted means of the first half, then of all, then by columns.

    A row weighs the more the earlier its group of tied rows comes. Squares that differ by less than ``tie`` of their
    median, or of themselves, are tied.
    """
    groups, last = [list(range(len(X)))], (len(X) - 1) // 2
    while True:
        tied = [i for group in groups if len(group) > 1 for i in group]
        if not tied:
            break
        sizes = np.cumsum([len(group) for group in groups])
        n_first = int(np.argmax(sizes > last)) + 1
        centre = sum((n_first - g) * X[groups[g]].sum(axis=0) for g in range(n_first))
        centre = centre / sum((n_first - g) * len(groups[g]) for g in range(n_first))
        squares = ((X - centre) ** 2).sum(axis=1)
        unit = np.median(squares[tied])
        parted = []
        for group in groups:
            before = -np.inf
            for i in sorted(group, key=lambda i: squares[i]):
                if squares[i] - before > tie * max(squares[i], unit):
                    parted.append([])
                parted[-1].append(i)
                before = squares[i]
        if len(parted) == len(groups):
            if last == len(X) - 1:
                break
            last = len(X) - 1
        groups = parted
    return [i for group in groups for i in sorted(group, key=lambda i: tuple(X[i]))]


def effective_neighbors(p, n_neighbors=7):
    """r of p landmarks: n_neighbors, but at most half of the landmarks, and at least 1."""
    return min(n_neighbors, max(1, p // 2))


def neighborhood_members(X, Z, r):
    """N(x) for every row: the numbers of the landmarks no farther away than the r-th nearest, as sets.

    Distances within 1e-9 of that of the r-th nearest are equal to it. A set has at most 4 r members: landmarks that are
    nearer than the r-th come first, then those at its distance, in the order of their numbers.
    """
    found = []
    for x in X:
        order, gaps = nearest_rows(x, Z)
        radius = gaps[order[min(r, len(Z)) - 1]]
        nearer = [z for z in range(len(Z)) if gaps[z] < radius * (1 - 1e-9)]
        tied = [z for z in range(len(Z)) if z not in nearer and gaps[z] <= radius * (1 + 1e-9)]
        found.append(set((nearer + tied)[: 4 * r]))
    return found


def edge_weights(Z, r):
    """w_z = max(exp(−ρ_z²/median ρ²), 2⁻⁵²), ρ_z the distance from z to its r-th nearest other landmark.

    The last one if there are fewer than r others, 0 without any. If the median is 0: 1 for ρ_z = 0, else 2⁻⁵².
    """
    squares = []
    for i, z in enumerate(Z):
        order, gaps = nearest_rows(z, Z, own=i)
        others = order[1:]
        squares.append(gaps[others[min(r, len(others)) - 1]] ** 2 if others else 0.0)
    middle = float(np.median(squares))
    if middle == 0:
        return np.array([1.0 if square == 0 else 2.0**-52 for square in squares])
    return np.array([max(float(np.exp(-square / middle)), 2.0**-52) for square in squares])


def neighborhood_kernel(X, Z, r, Y=None):
    """κ(x, y) = Σ of w_z over landmarks z in both N(x) and N(y), for every x in X and y in Y, which is X by default."""
    weights, first = edge_weights(Z, r), neighborhood_members(X, Z, r)
    second = first if Y is None else neighborhood_members(Y, Z, r)
    K = np.zeros((len(first), len(second)))
    for i, own in enumerate(first):
        for j, other in enumerate(second):
            for z in own & other:
                K[i, j] += weights[z]
    return K


def hypergraph_components(X, Z, r):
    """How many connected components the rows have, and the component of every row: rows that share a landmark touch.

    Components are numbered by their first row.
    """
    members = neighborhood_members(X, Z, r)
    touch = [[bool(own & other) for other in members] for own in members]
    return connected_components(np.array(touch), directed=False)


def doubled_neighbors(X, Z, k, n_neighbors=7):
    """r, doubled, to at most the number of landmarks, until there are at most k connected components."""
    r = effective_neighbors(len(Z), n_neighbors)
    while hypergraph_components(X, Z, r)[0] > k:
        r = min(2 * r, len(Z))
    return r


def neighborhood_cut(X, Z, r, k, order=2):
    """The k − 1 largest eigenvalues of B, and the embedding: √S normalised, then their eigenvectors."""
    K = neighborhood_kernel(X, Z, r)
    degrees = K.sum(axis=1)
    S = 2 / order * degrees + (1 - 2 / order) * degrees.mean()
    B = (K - np.outer(degrees, degrees) / degrees.sum()) / np.sqrt(np.outer(S, S))
    trivial = np.sqrt(S / S.sum())
    values, vectors = leading_pairs(B, trivial, k - 1)
    return values, np.column_stack([trivial, vectors])


def heat_average(X, f, x, t, dimension):
    """Σ_y H_t(x; y) f(y) for one tuple x of row numbers, over all tuples y of as many points."""
    total = 0.0
    for y in product(range(len(X)), repeat=len(x)):
        heat = sum(np.exp(-sum((X[a] - X[b]) ** 2) / (4 * t)) for a in x for b in y)
        total += heat / (4 * np.pi * t) ** (dimension / 2) * sum(f[b] for b in y)
    return total


# Factored K


def nystroem(kernel, X, Z):
    """κ(x, Z) W⁺ κ(Z, y), W = κ(Z, Z), for every pair of rows."""
    C = np.array([[kernel(x, z) for z in Z] for x in X])
    W = np.array([[kernel(a, b) for b in Z] for a in Z])
    return C @ np.linalg.pinv(W) @ C.T


def least_order(K, k, orders=(2, 2.05, 2.1, 2.25, 2.5, 3, 4)):
    """The first order whose k clusters all have at least √(n/k) rows; else that with the largest smallest cluster."""
    degrees, smallest = K.sum(axis=1), []
    for order in orders:
        S = 2 / order * degrees + (1 - 2 / order) * degrees.mean()
        B = (K - np.outer(degrees, degrees) / degrees.sum()) / np.sqrt(np.outer(S, S))
        rows = np.column_stack([np.sqrt(S / S.sum()), np.linalg.eigh(B)[1][:, ::-1][:, : k - 1]])
        labels = KMeans(k, n_init=10, random_state=0).fit_predict(rows)
        smallest.append(np.bincount(labels, minlength=k).min())
        if smallest[-1] >= np.sqrt(len(K) / k):
            return order
    return orders[int(np.argmax(smallest))]


# Selection


def pair_agreement(first, second):
    """The adjusted Rand index by counting pairs of rows."""
    both = one = other = pairs = 0
    for i in range(len(first)):
        for j in range(i):
            together = first[i] == first[j], second[i] == second[j]
            both += all(together)
            one += together[0]
            other += together[1]
            pairs += 1
    expected = one * other / pairs
    return 1.0 if (one + other) / 2 == expected else (both - expected) / ((one + other) / 2 - expected)


def kept_inside(A, labels):
    """The mean over clusters of the edges inside / all edges of its rows."""
    shares = []
    for cluster in np.unique(labels):
        inside = volume = 0.0
        for i in np.flatnonzero(labels == cluster):
            for j in range(len(labels)):
                volume += A[i, j]
                inside += A[i, j] if labels[j] == cluster else 0.0
        shares.append(inside / volume if volume else 0.0)
    return float(np.mean(shares))


def calibration_error(p, truth, bins=10):
    """Σ over bins of equally many rows, by p, of (share of rows) × |mean p − share of true ones|."""
    order = np.argsort(p, kind="stable")
    total = 0.0
    for rows in np.array_split(order, bins):
        total += len(rows) / len(p) * abs(np.mean(p[rows]) - np.mean(truth[rows]))
    return total


def modes(means, deviation, shares, cells=4001):
    """How many modes Σ_j π_j N(x; m_j, s²) has, counted on a grid."""
    x = np.linspace(min(means) - deviation, max(means) + deviation, cells)
    height = sum(p * np.exp(-((x - m) ** 2) / (2 * deviation**2)) for p, m in zip(shares, means, strict=True))
    return sum(height[i - 1] < height[i] > height[i + 1] for i in range(1, cells - 1))


def consensus_similarity(L):
    """K_ij = the number of partitions that put rows i and j together: the co-association matrix."""
    return sum(((labels[:, None] == labels) & (labels >= 0)).astype(float) for labels in L.T)


def largest_as_stable(rows, equal):
    """The largest k whose stability is within one standard error of the best, or within ``equal`` if that is more.

    ``rows`` are (k, stability, standard error, whether k covers the parts). A k that does not counts if its stability
    is 1, or less by at most ``equal``; if no k counts, all do.
    """
    able = [row for row in rows if row[3] or row[1] >= 1 - equal] or rows
    _, best, error, _ = max(able, key=lambda row: (row[1], row[0]))
    return max(k for k, stability, _, _ in able if best - stability <= max(error, equal) + 1e-9)


def mode_prominence(height, edges):
    """The largest fall from a mode to its saddle: over all but the highest mode, the least descent on a way up.

    For every vertex, the highest pass to any higher vertex, by trying all levels; ``edges`` are (i, j, height).
    """
    n, found = len(height), 0.0
    highest = np.full(n, -np.inf)
    for level in {low for *_, low in edges}:
        first, second = np.array([(i, j) for i, j, low in edges if low >= level]).T
        _, part = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(n, n)), directed=False)
        for i in range(n):
            if any(part[j] == part[i] and height[j] > height[i] for j in range(n)):
                highest[i] = max(highest[i], level)
    return max([found, *(h - low for h, low in zip(height, highest, strict=True) if np.isfinite(low))])


def prepared_table(columns, missing, scale):
    """The table of tests/tables/test_preparer.py as numbers, cell by cell: values, names, rows that are kept."""
    n = len(columns["age"])
    rows = [{name: values[i] for name, values in columns.items()} for i in range(n)]
    kept = [missing != "drop" or None not in (row["age"], row["color"]) for row in rows]
    rows = [row for row, stays in zip(rows, kept, strict=True) if stays]
    ages = [row["age"] for row in rows if row["age"] is not None]
    fill = np.median(ages) if missing == "median" else np.mean(ages)
    colors = [row["color"] for row in rows]
    present = [color for color in colors if color is not None]
    if missing in ("mean", "median"):
        common = min(set(present), key=lambda color: (-present.count(color), color))
        colors = [common if color is None else color for color in colors]
    levels = sorted(set(present)) + [None] * (None in colors)
    values = []
    for row in rows:
        age = fill if row["age"] is None else row["age"]
        day = (date.fromisoformat(row["day"]) - date(1970, 1, 1)).days
        values.append([age, day, float(row["member"])])
    for j in range(2):  # booleans stay 0 and 1
        column = [row[j] for row in values]
        low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
        ways = {"standard": (np.mean(column), np.std(column)), "robust": (middle, high - low), "none": (0.0, 1.0)}
        offset, divisor = ways[scale]
        for row in values:
            row[j] = (row[j] - offset) / (divisor or 1.0)
    names = ["age", "day", "member"]
    if missing == "indicator":
        names.append("age=(missing)")
        for made, row in zip(values, rows, strict=True):
            made.append(float(row["age"] is None))
    for made, color in zip(values, colors, strict=True):
        made.extend(0.5**0.5 if color == level else 0.0 for level in levels)
    names += [f"color={'(missing)' if level is None else level}" for level in levels]
    return np.array(values), names, kept


# Tables of text


def text_columns(text: str, date_order: str = "") -> list[tuple[str, str, np.ndarray]]:
    """The columns of a text between commas below a line of names: name, kind and values, field by field."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    names = rows.pop(0)
    width = len(names)
    rows = [row or [""] for row in rows if width == 1 or len(row) > 1 or (row and row[0].strip())]
    while rows and not any(field.strip() for field in rows[-1]):
        rows.pop()
    if any(len(row) != width for row in rows):
        raise ValueError("rows of several lengths")
    return [(name, *_typed([row[j] for row in rows], date_order)) for j, name in enumerate(names)]


def _typed(fields: list[str], date_order: str) -> tuple[str, np.ndarray]:
    missing = [field.strip().lower() in ("", "na", "n/a", "nan", "null", "none", "?") for field in fields]

    def number(field: str) -> float:
        if "_" in field or any(not (32 <= ord(sign) < 127 or sign in "\t\r\n") for sign in field):
            raise ValueError(field)
        return float(field)

    def boolean(field: str) -> float:
        return {"true": 1.0, "false": 0.0}[field.strip().lower()]

    def day(field: str) -> np.datetime64:
        text = field.strip()
        for sign in "/.-" if date_order else "":
            parts = text.split(" ")[0].split(sign)
            if [*map(len, parts)] in ([1, 1, 4], [1, 2, 4], [2, 1, 4], [2, 2, 4]):
                first, second, year = parts
                pair = (second, first) if date_order == "day" else (first, second)
                text = "-".join([year, *(part.rjust(2, "0") for part in pair)]) + text.removeprefix(sign.join(parts))
        if re.match(r"[0-9]{4}/[0-9]{2}/", text):
            text = text.replace("/", "-")
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?Z?)?", text):
            raise ValueError(field)
        return np.datetime64(datetime.fromisoformat(text.removesuffix("Z")), "us")

    for kind, read, nothing in (
        ("number", number, np.nan),
        ("boolean", boolean, np.nan),
        ("date", day, np.datetime64("NaT", "us")),
    ):
        with suppress(ValueError, KeyError):
            return kind, np.array([nothing if gone else read(f) for f, gone in zip(fields, missing, strict=True)])
    return "text", np.array(fields, dtype=object)


def gower_distance(x, y, ranges, categorical):
    """Σ δ s / Σ δ over columns: δ = 1 if both are there; s = |x − y|/range, or whether categories differ; 1 if no δ."""
    total = shared = 0.0
    for a, b, span, is_category in zip(x, y, ranges, categorical, strict=True):
        if np.isnan(a) or np.isnan(b):
            continue
        shared += 1
        if is_category or span == 0:
            total += float(a != b)
        else:
            total += abs(a - b) / span
    return total / shared if shared else 1.0


def gower_ranges(X):
    """The largest minus the least value of every column, gaps left out; 0 for a column of gaps."""
    columns = [column[~np.isnan(column)] for column in np.asarray(X, dtype=float).T]
    return [float(np.ptp(column)) if len(column) else 0.0 for column in columns]


def gower_kernel(X, Y, gamma, categorical):
    """exp(−γ q) for every pair; ranges are those of Y, the training rows."""
    ranges = gower_ranges(Y)
    return np.array([[np.exp(-gamma * gower_distance(x, y, ranges, categorical)) for y in Y] for x in X])


def leading_pairs(B, trivial, k):
    """The k algebraically largest eigenpairs of B among vectors orthogonal to ``trivial``, by full decomposition."""
    values, vectors = np.linalg.eigh(B - 10 * np.linalg.norm(B) * np.outer(trivial, trivial))
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def row_digests(X):
    """16 bytes of blake2b for every row, one after the other; −0.0 counts as 0.0."""
    return [blake2b((row + 0.0).tobytes(), digest_size=16).digest() for row in np.ascontiguousarray(X)]


def standardised_difference(values, labels, n_clusters):
    """(mean − mean of the rest)/s, s² the pooled variance of both; missing values are left out; 0 if s = 0."""

    def of_groups(own, rest):
        free = len(own) + len(rest) - 2
        spread = own.var() * len(own) + rest.var() * len(rest)
        gap = float(own.mean() - rest.mean())
        if free < 1 or spread <= 0:
            return 0.0 if gap == 0 else float(np.copysign(np.inf, gap))
        return gap / float(np.sqrt(spread / free))

    there = ~np.isnan(values)
    return _of_clusters(values[there], labels[there], n_clusters, of_groups)


def share_difference(holds, labels, n_clusters):
    """The share of rows that have a value, minus that of the rest."""
    return _of_clusters(holds.astype(float), labels, n_clusters, lambda own, rest: float(own.mean() - rest.mean()))


def _of_clusters(values, labels, n_clusters, compare):
    """A comparison of every cluster with the rest; not a number if one of them has no rows."""
    out = np.full(n_clusters, np.nan)
    for cluster in range(n_clusters):
        own = labels == cluster
        if own.any() and not own.all():
            out[cluster] = compare(values[own], values[~own])
    return out
