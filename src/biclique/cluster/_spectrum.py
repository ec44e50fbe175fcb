"""The fitted embedding: eigenpairs of a cut, and their extension to new rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.cluster._prepare import Prepared, TrainingRows
from biclique.exceptions import RankWarning, SolverWarning, warn_user
from biclique.gram import GramOperator
from biclique.namespace import namespace
from biclique.progress import Progress
from biclique.spectral import BASIS_BLOCKS, EigenResult, Extension, NormalizedCut, scipy_eigenpairs, top_eigenpairs

QUICK_TOLERANCE, FINE_TOLERANCE = 1e-3, 1e-8
"""Angles to the true eigenspace that ``eigen_tol="auto"`` asks for: the first is plenty for labels."""


def auto_tolerance(gram: GramOperator, precision: str) -> float:
    """Fine where passes are cheap (a stored K) or float64 was asked for; quick where every pass computes K anew."""
    return QUICK_TOLERANCE if gram.name in ("tiled", "cuda") and precision != "float64" else FINE_TOLERANCE


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows divided by their lengths; a zero row stays."""
    xp = namespace(rows)
    lengths = xp.sqrt((rows * rows).sum(1))[:, None]
    return xp.where(lengths > 0, rows / xp.where(lengths > 0, lengths, 1.0), 0.0)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SolverOptions:
    """How eigenpairs are found; the defaults of every estimator."""

    name: str | None = None
    tol: float | str = "auto"
    max_passes: int = 100
    precision: str = "auto"


@dataclass(frozen=True)
class Spectrum:
    """A fitted embedding: its rows for the vertices, and the function that extends it."""

    training: TrainingRows
    rows: FloatArray  # (n_vertices, n_components), trivial column first
    extension: Extension
    eigenvalues: FloatArray
    residuals: FloatArray

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows; a training row gets its own row back."""
        X = self.training.match(X)
        return self.embed_vertices(X, self.training.find(X), n_jobs)

    def embed_vertices(self, X: Rows, place: IntArray, n_jobs: int | None) -> FloatArray:
        """The embedding of rows that are vertices ``place``, −1 for new rows; a vertex gets its own row."""
        return np.asarray(self.training.known_or_new(self.rows, place, X, lambda new: self.extend(new, n_jobs)))

    def extend(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of new rows, by the closed form."""
        found = self.extension.embed(self.training.cross(X, n_jobs))
        return np.pad(found, ((0, 0), (0, self.rows.shape[1] - found.shape[1])))


def fit_spectrum(
    prepared: Prepared, n_components: int, options: SolverOptions, progress: Progress, *, fewer_rows: bool = False
) -> Spectrum:
    """Solve a cut: ``n_components`` columns, the trivial one among them.

    ``fewer_rows`` says that the caller warns of too few distinct rows itself.
    """
    cut = prepared.cut
    plan = prepared.plan
    pairs = solve_cut(cut, plan.n_vectors, options, prepared.random, progress, basis_blocks=plan.basis_blocks)
    extension, rows = Extension.fit(cut, pairs, cut.gram.noise)
    warn_about_pairs(pairs, extension, n_components, fewer_rows)
    missing = n_components - rows.shape[1]
    return Spectrum(
        training=prepared.training,
        rows=np.pad(rows, ((0, 0), (0, missing))),
        extension=extension,
        eigenvalues=np.pad(pairs.values, (0, missing)),
        residuals=np.pad(pairs.residuals, (0, missing)),
    )


def solve_cut(
    cut: NormalizedCut,
    k: int,
    options: SolverOptions,
    random: np.random.RandomState,
    progress: Progress,
    *,
    basis_blocks: int = BASIS_BLOCKS,
) -> EigenResult:
    """The k leading eigenpairs of B, by the solver that was asked for."""
    noise = cut.gram.noise
    if k < 1:
        return EigenResult.none(cut.trivial)
    tol = auto_tolerance(cut.gram, options.precision) if isinstance(options.tol, str) else float(options.tol)
    if options.name in ("arpack", "lobpcg"):
        return scipy_eigenpairs(
            cut,
            k,
            options.name,
            tol=tol,
            max_iter=options.max_passes,
            start=cut.start,
            deflate=cut.trivial,
            random_state=random,
            noise=noise,
        )
    return top_eigenpairs(
        cut,
        k,
        tol=tol,
        max_iter=options.max_passes,
        noise=noise,
        start=cut.start if cut.start.shape[1] else None,
        start_image=cut.start_image if cut.start.shape[1] else None,
        deflate=cut.trivial,
        basis_blocks=basis_blocks,
        random_state=random,
        report=progress.passed,
    )


def warn_unless_converged(pairs: EigenResult) -> None:
    """Say how many eigenpairs missed the tolerance, and by how much."""
    if not pairs.converged:
        above = int((pairs.residuals > pairs.target).sum())
        warn_user(
            f"{above} of {len(pairs.values)} eigenpairs above tol (worst residual {pairs.residuals.max():.1e} > "
            f"{pairs.target:.1e}) after {pairs.n_passes} passes; raise max_iter or eigen_tol.",
            SolverWarning,
        )


def warn_about_pairs(pairs: EigenResult, extension: Extension, n_components: int, enough_said: bool = False) -> None:
    """Say what is wrong with eigenpairs: not converged, negative, or too few."""
    warn_unless_converged(pairs)
    negative = int((pairs.values[extension.informative] < 0).sum())
    if negative:
        warn_user(
            f"{negative} of {len(pairs.values)} eigenvalues are negative (lowest {pairs.values.min():.2g}): the "
            "kernel's contraction is indefinite, and those columns set apart what is similar; ask for fewer clusters, "
            "or use another affinity or order.",
            RankWarning,
        )
    informative = int(extension.informative.sum()) + 1
    if informative < n_components and not enough_said:
        warn_user(
            f"the kernel gives {informative} informative columns, {n_components} were asked for: the rest of the "
            "embedding is zero; use another affinity or fewer clusters.",
            RankWarning,
        )
