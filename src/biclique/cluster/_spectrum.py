"""The pipeline: kernel → Gram operator → normalised cut → eigenpairs → embedding."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, Rows
from biclique.cluster._checks import warn_about_spread
from biclique.cluster._rows import all_rows, distinct_rows, find_rows
from biclique.exceptions import DisconnectedWarning, RankWarning, SolverWarning
from biclique.gram import (
    Cost,
    DenseGram,
    GramOperator,
    HeldRows,
    SparseGram,
    StoredCross,
    choose_gram,
    choose_precision,
    data_bytes,
    dense_bytes,
    estimate_seconds,
    make_gram,
    parse_memory_limit,
    part_sizes,
    require,
    symmetric,
    symmetric_sparse,
    tiled_bytes,
)
from biclique.kernels import GAMMA_KERNELS, Kernel, bandwidth, check_rows_for_kernel, make_kernel
from biclique.progress import Progress
from biclique.spectral import (
    BASIS_BLOCKS,
    FEWEST_BLOCKS,
    EigenResult,
    Extension,
    NormalizedCut,
    basis_bytes,
    block_columns,
    check_order,
    scipy_eigenpairs,
    solves_directly,
    top_eigenpairs,
)

DEFAULT_ORDER = 4.0
"""For full kernels: high enough that an isolated point owns no eigenvector."""

AUTO_TOLERANCE = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-8}
"""Angle to the true eigenspace that ``eigen_tol="auto"`` asks for, by the precision of a product."""

LONG_SECONDS = 10.0


@dataclass(frozen=True)
class Vertices:
    """What the Gram operator is built on: distinct rows (or a given matrix) and their multiplicities."""

    data: Rows  # distinct rows, or the given matrix of the rows that count
    weights: FloatArray
    index: np.ndarray  # (n,), −1 where a row does not count
    digests: np.ndarray  # () for a given matrix
    given: bool
    kept: np.ndarray | None  # for a given matrix: the columns that count

    @property
    def n(self) -> int:
        return int(self.data.shape[0])


@dataclass(frozen=True)
class Spectrum:
    """A fitted embedding: its rows for the vertices, and the function that extends it."""

    vertices_digests: np.ndarray
    vertices_kept: np.ndarray | None
    index: np.ndarray
    weights: FloatArray
    rows: FloatArray  # (n_vertices, n_components), trivial column first
    extension: Extension
    held: HeldRows | None
    gamma: float | None
    order: float
    gram: str
    precision: str
    eigenvalues: FloatArray
    residuals: FloatArray
    n_passes: int

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows; a training row gets its own row back."""
        if self.held is None:
            columns = X if self.vertices_kept is None else X[:, self.vertices_kept]
            cross: Any = StoredCross(columns, n_jobs=n_jobs)
            return self._padded(self.extension.embed(cross))
        place = find_rows(self.vertices_digests, X)
        out = self.rows[place]
        new = np.flatnonzero(place < 0)
        if len(new):
            out[new] = self._padded(self.extension.embed(self.held.cross(X[new], n_jobs=n_jobs)))
        return out

    def _padded(self, embedding: FloatArray) -> FloatArray:
        missing = self.rows.shape[1] - embedding.shape[1]
        return np.pad(embedding, ((0, 0), (0, missing)))


def find_vertices(model: Any, X: Rows, weights: FloatArray) -> Vertices:
    """Distinct rows with multiplicities; for a given matrix the rows that count."""
    if model.affinity != "precomputed":
        found = distinct_rows(X, weights)
        return Vertices(found.rows, found.weights, found.index, found.digests, False, None)
    K = symmetric_sparse(X) if sparse.issparse(X) else symmetric(np.asarray(X, dtype=float))
    kept, index = all_rows(X.shape[0], weights)
    if len(kept) == X.shape[0]:
        return Vertices(K, weights, index, np.empty(0), True, None)
    return Vertices(K[kept][:, kept], weights[kept], index, np.empty(0), True, kept)


def choose_kernel(model: Any, vertices: Vertices, random: np.random.RandomState) -> tuple[Kernel | None, float | None]:
    """The kernel with its γ chosen, and that γ; neither for a given matrix."""
    affinity = model.affinity
    if vertices.given:
        return None, None
    gamma: float | None = None
    if isinstance(affinity, str):
        check_rows_for_kernel(affinity, vertices.data)
        if affinity in GAMMA_KERNELS:
            rule = model.gamma
            gamma = (
                bandwidth(rule, affinity, vertices.data, vertices.weights, random)
                if isinstance(rule, str)
                else float(rule)
            )
    kernel = make_kernel(
        affinity, gamma=gamma, degree=model.degree, coef0=model.coef0, kernel_params=model.kernel_params
    )
    return kernel, gamma


@dataclass(frozen=True)
class Plan:
    """How K will be held and solved, decided before any of it is allocated."""

    gram: str
    dtype: Any
    n_vectors: int
    memory_limit: int
    gram_bytes: int
    basis_blocks: int
    basis_bytes: int


def make_plan(model: Any, vertices: Vertices, kernel: Kernel | None, n_vectors: int) -> Plan:
    """Choose how K is held, and how long a basis fits beside it; refuse what does not fit at all."""
    limit = parse_memory_limit(model.memory_limit)
    n, columns = vertices.n, block_columns(n_vectors, vertices.n)
    dtype: Any = np.dtype(np.float64)
    if kernel is None:
        gram, size = "sparse" if sparse.issparse(vertices.data) else "dense", 0
    else:
        gram = choose_gram(model.gram, kernel, vertices.data, limit)
        size = dense_bytes(n)
        if gram == "tiled":
            dtype = choose_precision(model.precision, kernel, vertices.data)
            size = tiled_bytes(n, vertices.data.shape[1], columns, dtype)
    blocks = next(
        (b for b in range(BASIS_BLOCKS, FEWEST_BLOCKS, -1) if size + basis_bytes(n, n_vectors, b) <= limit),
        FEWEST_BLOCKS,
    )
    basis = basis_bytes(n, n_vectors, blocks)
    if not solves_directly(n, n_vectors) and not (gram == "dense" and size > limit):  # which says so itself
        require(
            size + basis,
            limit,
            f"gram={gram!r} for {n} distinct rows and {n_vectors} eigenvectors",
            "raise memory_limit, ask for fewer clusters, or fit a sample of the rows and predict the rest.",
        )
    return Plan(gram, dtype, n_vectors, limit, size, blocks, basis)


def estimate(model: Any, vertices: Vertices, kernel: Kernel | None, plan: Plan) -> Cost:
    """Time and memory of a fit, from the speed of a few tiles."""
    seconds = estimate_seconds(
        kernel,
        vertices.data,
        gram=plan.gram,
        dtype=plan.dtype,
        columns=block_columns(plan.n_vectors, vertices.n),
        n_jobs=model.n_jobs,
    )
    return Cost(plan.gram, vertices.n, seconds, data_bytes(vertices.data) + plan.gram_bytes + plan.basis_bytes)


def fit_spectrum(model: Any, X: Rows, weights: FloatArray, n_components: int, progress: Progress) -> Spectrum:
    """Fit the embedding of an estimator: ``n_components`` columns, the trivial one among them."""
    random = check_random_state(model.random_state)
    names = getattr(model, "feature_names_in_", None)
    order = DEFAULT_ORDER if model.order == "auto" else check_order(model.order)
    vertices = find_vertices(model, X, weights)
    if not vertices.given:
        warn_about_spread(X, names)
    kernel, gamma = choose_kernel(model, vertices, random)
    n_vectors = min(n_components, vertices.n) - 1
    plan = make_plan(model, vertices, kernel, n_vectors)
    if progress.enabled:
        cost = estimate(model, vertices, kernel, plan)
        if cost.seconds > LONG_SECONDS:
            progress.say(str(cost))
    gram = _hold(model, vertices, kernel, plan, progress)
    noise = float(np.finfo(gram.dtype).eps)

    direct = n_vectors < 1 or (
        model.eigen_solver in (None, "auto", "krylov") and solves_directly(vertices.n, n_vectors)
    )
    probe = None if direct else random.standard_normal((vertices.n, block_columns(n_vectors, vertices.n)))
    cut = NormalizedCut(gram, order, vertices.weights, probe)
    pairs = _solve(model, cut, plan, noise, random, progress)
    _warn_about_parts(part_sizes(gram, cut.degrees, cut.weights, random), vertices, gamma)
    extension, rows = Extension.fit(cut, pairs, noise)
    _warn_about_pairs(pairs, extension, n_components, vertices)
    missing = n_components - rows.shape[1]
    return Spectrum(
        vertices_digests=vertices.digests,
        vertices_kept=vertices.kept,
        index=vertices.index,
        weights=vertices.weights,
        rows=np.pad(rows, ((0, 0), (0, missing))),
        extension=extension,
        held=getattr(gram, "held", None),
        gamma=gamma,
        order=order,
        gram=gram.name,
        precision=str(gram.dtype),
        eigenvalues=np.pad(pairs.values, (0, missing)),
        residuals=np.pad(pairs.residuals, (0, missing)),
        n_passes=cut.n_passes,
    )


def _hold(model: Any, vertices: Vertices, kernel: Kernel | None, plan: Plan, progress: Progress) -> GramOperator:
    if kernel is None:
        stored = SparseGram if plan.gram == "sparse" else DenseGram
        return stored(vertices.data, n_jobs=model.n_jobs)
    return make_gram(
        plan.gram,
        kernel,
        vertices.data,
        dtype=plan.dtype,
        n_jobs=model.n_jobs,
        memory_limit=plan.memory_limit,
        tick=progress.tick if progress.enabled else None,
    )


def _solve(
    model: Any,
    cut: NormalizedCut,
    plan: Plan,
    noise: float,
    random: np.random.RandomState,
    progress: Progress,
) -> EigenResult:
    k = plan.n_vectors
    n = cut.shape[0]
    if k < 1:
        empty = np.empty((n, 0))
        return EigenResult(np.empty(0), empty, empty, np.empty(0), 0, True, 0.0)
    auto = model.eigen_tol == "auto"
    if model.eigen_solver in ("arpack", "lobpcg"):
        return scipy_eigenpairs(
            cut,
            k,
            model.eigen_solver,
            tol=max(10 * noise, 1e-10) if auto else model.eigen_tol,
            max_iter=model.max_iter,
            start=cut.start,
            deflate=cut.trivial,
            random_state=random,
        )
    return top_eigenpairs(
        cut,
        k,
        tol=AUTO_TOLERANCE[cut.gram.dtype] if auto else model.eigen_tol,
        max_iter=model.max_iter,
        noise=noise,
        start=cut.start if cut.start.shape[1] else None,
        start_image=cut.start_image if cut.start.shape[1] else None,
        deflate=cut.trivial,
        basis_blocks=plan.basis_blocks,
        random_state=random,
        report=progress.passed,
    )


def _warn_about_parts(sizes: np.ndarray, vertices: Vertices, gamma: float | None) -> None:
    if len(sizes) < 2:
        return
    shown = ", ".join(map(str, sizes[:5])) + (", …" if len(sizes) > 5 else "")
    cure = f"lower gamma (now {gamma:.3g})" if gamma is not None else "use a kernel that reaches further"
    warnings.warn(
        f"the kernel falls into {len(sizes)} disconnected parts ({shown} of {vertices.n} distinct rows): similarities "
        f"between them vanish, so nothing tells which parts belong together. If some do, {cure}.",
        DisconnectedWarning,
        stacklevel=5,
    )


def _warn_about_pairs(pairs: EigenResult, extension: Extension, n_components: int, vertices: Vertices) -> None:
    if not pairs.converged:
        above = int((pairs.residuals > pairs.target).sum())
        warnings.warn(
            f"{above} of {len(pairs.values)} eigenpairs above tol (worst residual {pairs.residuals.max():.1e} > "
            f"{pairs.target:.1e}) after {pairs.n_passes} passes; raise max_iter or eigen_tol.",
            SolverWarning,
            stacklevel=5,
        )
    informative = int(extension.informative.sum()) + 1
    if informative < n_components and vertices.n >= n_components:
        warnings.warn(
            f"the kernel gives {informative} informative columns, {n_components} were asked for: the rest of the "
            "embedding is zero; use another affinity or fewer clusters.",
            RankWarning,
            stacklevel=5,
        )
