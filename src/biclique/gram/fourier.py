"""K through nonuniform FFTs, for rows of one to three columns: a product costs O(n + N^d log N), not O(n²).

On a box of sides L_a that holds the rows and, beside them, the reach of the kernel,

    κ(x − y) = Σ_k c_k exp(2πi Σ_a k_a (x_a − y_a) / L_a),   c_k = κ̂(2π k/L) / Π_a L_a,

up to ε: what wraps around the box is below κ(reach) = ε, and so is what is left out beyond |2π k_a/L_a| = cutoff, where
κ̂ has fallen to ε of its largest value. So K V = F* diag(c) F V, with F and F* by finufft (the extra [fourier]).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError, optional
from biclique.gram.computed import ComputedGram
from biclique.gram.operator import Cross, CrossGram
from biclique.kernels.held import HeldRows
from biclique.kernels.kernel import Kernel
from biclique.neighbors.index import members_of
from biclique.runtime.memory import require_memory
from biclique.runtime.threads import Pulse, Tick, count_threads, run_groups

MOST_COLUMNS = 3
"""Columns of X that a grid may have: its modes grow with their power."""

TARGET = 1e-5
"""The largest error of a product that is allowed, relative to each row's own degree, on the measured rows."""

PRECISIONS = ((np.float32, 1e-6), (np.float64, 1e-9), (np.float64, 1e-12))
"""Precisions and tolerances in the order in which they are tried."""

MOST_MODES = 2**24
"""Of one box: 256 MiB in float64, and 2^d times that while it is transformed."""

FEW_ROWS = 64
"""Boxes of no more rows are multiplied as they are."""

PANEL_ROWS = 2**15
"""Rows against which one row is computed at once: they stay in the cache."""

MEASURED = 32
"""Rows of the lowest degree, and as many others, on which the error is measured."""

DIRECT_PAIRS = 5e7
"""Up to so many pairs of new and training rows are computed one by one: quicker than a grid."""

FAINTER = 0.1
"""New rows whose degree is below this share of the lowest of a training row are computed one by one."""


class GridError(ParameterError):
    """Rows that no grid holds."""


def load_finufft() -> Any:
    """finufft, or a line that says how to get it."""
    return optional("finufft", "gram='fourier' needs finufft: pip install 'biclique[fourier]'")


class Spectrum(NamedTuple):
    """A kernel of x − y by its frequencies: κ(z) = (2π)^(−d) ∫ κ̂(ω) exp(i⟨ω, z⟩) dω."""

    gamma: float
    n_columns: int

    def density(self, squared: FloatArray) -> FloatArray:
        """κ̂(ω) = (π/γ)^(d/2) exp(−|ω|²/(4γ)) of rbf, as a function of |ω|²."""
        return np.asarray((np.pi / self.gamma) ** (self.n_columns / 2) * np.exp(-squared / (4 * self.gamma)))

    def reach(self, share: float) -> float:
        """|z| beyond which κ is below a share of κ(0)."""
        return float(np.sqrt(-np.log(share) / self.gamma))

    def cutoff(self, share: float) -> float:
        """|ω| beyond which κ̂ is below a share of its largest value."""
        return float(2 * np.sqrt(-np.log(share) * self.gamma))


def spectrum_of(kernel: Kernel, n_columns: int) -> Spectrum:
    """The spectral density of a kernel, or why none can be used."""
    if n_columns > MOST_COLUMNS:
        raise ParameterError(
            f"gram='fourier' is for at most {MOST_COLUMNS} columns, X has {n_columns}: use gram='tiled' (exact) or "
            "gram='nystroem', or reduce the columns first (sklearn.decomposition.PCA)."
        )
    if kernel.form is None or kernel.form.function != "gauss":
        raise ParameterError(
            f"gram='fourier' needs a kernel whose spectral density falls off fast, such as rbf, not {kernel.name!r}: "
            "use gram='tiled' (exact) or gram='nystroem'."
        )
    return Spectrum(kernel.form.gamma, n_columns)


@dataclass(frozen=True)
class Grid:
    """The modes of one box."""

    middle: FloatArray  # (d,)
    sides: FloatArray  # L, (d,)
    modes: tuple[int, ...]
    coefficients: FloatArray  # c, of the shape of the modes

    @classmethod
    def of(cls, spectrum: Spectrum, low: FloatArray, high: FloatArray, tolerance: float) -> Grid:
        """For rows between two corners."""
        sides = high - low + spectrum.reach(tolerance)
        modes = mode_counts(spectrum, sides, tolerance)
        axes = [2 * np.pi / side * np.arange(-(m // 2), m - m // 2) for side, m in zip(sides, modes, strict=True)]
        squared = sum(np.meshgrid(*[axis**2 for axis in axes], indexing="ij", sparse=True))
        density = spectrum.density(np.asarray(squared, dtype=float))
        return cls((low + high) / 2, sides, modes, density / np.prod(sides))

    def points(self, rows: FloatArray, dtype: np.dtype[Any]) -> list[FloatArray]:
        """Coordinates as angles, one array a column."""
        angles = (rows - self.middle) * (2 * np.pi / self.sides)
        return [np.ascontiguousarray(column, dtype=dtype) for column in angles.T]


def count_modes(spectrum: Spectrum, extent: FloatArray, tolerance: float) -> float:
    """Modes of a box of some extent, all in all."""
    sides = extent + spectrum.reach(tolerance)
    return float(np.prod(np.asarray(mode_counts(spectrum, sides, tolerance), dtype=float)))


def mode_counts(spectrum: Spectrum, sides: FloatArray, tolerance: float) -> tuple[int, ...]:
    """Modes of every column: odd, so that they lie symmetrically."""
    cutoff = spectrum.cutoff(tolerance)
    return tuple(2 * int(np.ceil(side * cutoff / (2 * np.pi))) + 1 for side in sides)


class _Transform:
    """F and F* of one grid between two sets of points, one thread each: bits do not depend on how many there are."""

    def __init__(self, grid: Grid, sources: FloatArray, targets: FloatArray, dtype: np.dtype[Any], tolerance: float):
        self.finufft = load_finufft()
        self.grid, self.dtype, self.tolerance = grid, np.dtype(dtype), tolerance
        self.complex = "complex64" if self.dtype == np.float32 else "complex128"
        self._from = grid.points(sources, self.dtype)
        self._to = self._from if targets is sources else grid.points(targets, self.dtype)
        self._coefficients = grid.coefficients.astype(self.dtype)
        self._plans: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

    def _plan(self, kind: int, sign: int, points: list[FloatArray]) -> Any:
        plan = self.finufft.Plan(kind, self.grid.modes, 1, self.tolerance, sign, self.complex, nthreads=1, modeord=0)
        plan.setpts(*points)
        return plan

    def multiply(self, V: FloatArray) -> tuple[FloatArray, ...]:
        """K of one or two real vectors, which are the parts of a complex one: K is real."""
        try:
            there, back = self._plans.get_nowait()
        except Empty:
            there, back = self._plan(1, -1, self._from), self._plan(2, 1, self._to)
        strengths = np.zeros(len(V), dtype=self.complex)
        strengths.real = V[:, 0]
        if V.shape[1] > 1:
            strengths.imag = V[:, 1]
        found = there.execute(strengths)
        found *= self._coefficients
        values = back.execute(found)
        self._plans.put((there, back))
        return (values.real, values.imag)[: V.shape[1]]


class _Boxes:
    """Rows in boxes between which the kernel is below the tolerance. Boxes of few rows have no grid."""

    def __init__(self, kernel: Kernel, rows: FloatArray, dtype: DTypeLike, tolerance: float) -> None:
        self.kernel, self.rows, self.dtype, self.tolerance = kernel, rows, np.dtype(dtype), tolerance
        self.spectrum = spectrum_of(kernel, rows.shape[1])
        members = far_apart(rows, self.spectrum.reach(tolerance))
        large = [some for some in members if len(some) > FEW_ROWS]
        self.large = [slice(None) if len(some) == len(rows) else some for some in large]  # all of them without a copy
        self._few = members[len(large) :]
        self._transforms: list[_Transform] = []

    def checked_modes(self) -> int:
        """Modes of the largest box, if a grid can have so many."""
        extents = [np.ptp(self.rows[some], axis=0) for some in self.large]
        modes = max((count_modes(self.spectrum, extent, self.tolerance) for extent in extents), default=1)
        if modes > MOST_MODES:
            raise GridError(
                f"gram='fourier' would need a grid of {modes:.2g} modes, at most {MOST_MODES}: rows spread too far for "
                f"this bandwidth; use gram='tiled' (exact) or gram='nystroem', or lower gamma."
            )
        return int(modes)

    @cached_property
    def few(self) -> IntArray:
        """The rows of boxes without a grid, box by box."""
        return np.concatenate([np.empty(0, dtype=np.intp), *self._few])

    @cached_property
    def _among_few(self) -> Any:
        """K among them: a sparse matrix of blocks."""
        sizes = [len(some) for some in self._few]
        alone = sizes.index(1) if 1 in sizes else len(sizes)  # the boxes are sorted by size
        near = [self.rows[some] - self.rows[some[0]] for some in self._few[:alone]]  # far away, digits would be lost
        blocks = [self.kernel.block(rows, rows) for rows in near]
        own = sparse.diags_array(self.kernel.diagonal(self.rows[self.few[sum(sizes[:alone]) :]]))
        return sparse.block_diag([*blocks, own], format="csr")

    def multiply(self, V: FloatArray, n_jobs: int | None, tick: Tick | None) -> FloatArray:
        """K V."""
        out = np.zeros(V.shape, order="F")
        if len(self.few):
            out[self.few] = self._among_few @ V[self.few]
        for some in self.large[len(self._transforms) :]:
            rows = self.rows[some]
            grid = Grid.of(self.spectrum, rows.min(axis=0), rows.max(axis=0), self.tolerance)
            self._transforms.append(_Transform(grid, rows, rows, self.dtype, self.tolerance))
        tasks = list(product(range(len(self.large)), range(0, V.shape[1], 2)))

        def work(task: int, pulse: Pulse) -> None:
            box, first = tasks[task]
            some = self.large[box]
            for j, column in enumerate(self._transforms[box].multiply(V[some, first : first + 2]), first):
                out[some, j] = column
            pulse()

        run_groups(work, len(tasks), n_jobs=n_jobs, total=max(len(tasks), 1), tick=tick)
        return out

    def multiply_new(self, Y: FloatArray, V: FloatArray, n_jobs: int | None) -> FloatArray:
        """κ(Y, X) V: every new row meets the boxes that it can reach."""
        out = np.zeros((len(Y), V.shape[1]), order="F")
        reach = self.spectrum.reach(self.tolerance)
        if len(self.few):
            tree = KDTree(self.rows[self.few])
            near = np.isfinite(tree.query(Y, distance_upper_bound=reach, workers=count_threads(n_jobs))[0])
            self._add_direct(out, np.flatnonzero(near), Y, self.few, V, n_jobs)
        for some in self.large:
            rows = self.rows[some]
            low, high = rows.min(axis=0), rows.max(axis=0)
            near = np.flatnonzero(((low - reach <= Y) & (high + reach >= Y)).all(axis=1))
            if float(len(near)) * len(rows) <= DIRECT_PAIRS:
                self._add_direct(out, near, Y, some, V, n_jobs)
                continue
            inside = Y[near]
            low, high = np.minimum(low, inside.min(axis=0)), np.maximum(high, inside.max(axis=0))
            grid = Grid.of(self.spectrum, low, high, self.tolerance)
            transform = _Transform(grid, rows, inside, self.dtype, self.tolerance)
            self._add_by_grid(out, near, transform, V[some], n_jobs)
        return out

    def _add_by_grid(
        self, out: FloatArray, near: IntArray, transform: _Transform, V: FloatArray, n_jobs: int | None
    ) -> None:
        """Add the products of some new rows with the training rows of a box."""

        def work(task: int, pulse: Pulse) -> None:
            for j, column in enumerate(transform.multiply(V[:, 2 * task : 2 * task + 2]), 2 * task):
                out[near, j] += column
            pulse()

        run_groups(work, -(-V.shape[1] // 2), n_jobs=n_jobs)

    def _add_direct(
        self, out: FloatArray, near: IntArray, Y: FloatArray, some: IntArray | slice, V: FloatArray, n_jobs: int | None
    ) -> None:
        """Add the products of some new rows with some training rows, pair by pair."""
        if len(near):
            held = HeldRows(self.kernel, self.rows[some], np.float64)
            out[near] += held.cross(Y[near], n_jobs).matmat(V[some])


def far_apart(rows: FloatArray, reach: float) -> list[IntArray]:
    """Rows in groups that are farther from each other than ``reach`` in some column, largest first.

    Cells of that side are linked to the cells around them; groups are what links connect.
    """
    cells = np.empty(rows.shape, dtype=np.int64)
    for column in range(rows.shape[1]):
        places = np.floor((rows[:, column] - rows[:, column].min()) / reach)
        found, inverse = np.unique(places, return_inverse=True)
        # Empty stretches count as one cell: numbers stay small, whatever the range.
        cells[:, column] = np.cumsum(np.minimum(np.diff(found, prepend=found[0]), 2)).astype(np.int64)[inverse]
    extent = cells.max(axis=0) + 3
    strides = np.concatenate([[1], np.cumprod(extent[:-1])]).astype(np.int64)
    keys, inverse = np.unique((cells + 1) @ strides, return_inverse=True)
    links = [np.empty((2, 0), dtype=np.int64)]
    for offset in product((-1, 0, 1), repeat=rows.shape[1]):
        step = int(np.asarray(offset) @ strides)
        if step > 0:
            at = np.minimum(np.searchsorted(keys, keys + step), len(keys) - 1)
            there = np.flatnonzero(keys[at] == keys + step)
            links.append(np.stack([there, at[there]]))
    first, second = np.concatenate(links, axis=1)
    graph = sparse.coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(len(keys),) * 2)
    labels = connected_components(graph.tocsr(), directed=False)[1][inverse]
    return sorted(members_of(labels), key=lambda some: (-len(some), int(some[0])))


@dataclass(frozen=True)
class ProductError:
    """How far products of an operator are from exact ones, on the rows that matter most."""

    product: float
    """The largest error of a product with ones and with random signs, relative to the row's own degree."""
    n_rows: int
    """Rows on which it was measured: half of them are those of the lowest degree."""
    counts_as_exact: bool = True

    def __str__(self) -> str:
        return f"products within {self.product:.1e} of each row's degree, on {self.n_rows} rows"

    def facts(self) -> dict[str, float]:
        return {"product": self.product, "n_rows": self.n_rows}


class FourierRows:
    """The training rows as a model keeps them, their weights, and the lowest degree: the error is known down to it."""

    def __init__(
        self, held: HeldRows, dtype: np.dtype[Any], tolerance: float, lowest: float, weights: FloatArray
    ) -> None:
        self.held, self.dtype, self.tolerance = held, dtype, tolerance
        self.lowest, self.weights, self.rows = lowest, weights, held.rows

    def hold(self, Y: Rows) -> Rows:
        return self.held.hold(Y)

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        """New rows against these: one by one if they are few, else through grids."""
        if float(Y.shape[0]) * self.rows.shape[0] <= DIRECT_PAIRS:
            return self.held.cross(Y, n_jobs)
        return self.by_grid(Y, n_jobs)

    def by_grid(self, Y: Rows, n_jobs: int | None) -> CrossGram:
        """Through grids, but for rows of far lower degree than any training row: a grid's error is too large there."""
        rows = np.asarray(self.hold(Y))
        boxes = _Boxes(self.held.kernel, np.asarray(self.rows), self.dtype, self.tolerance)

        def matmat(V: FloatArray) -> FloatArray:
            found = boxes.multiply_new(rows, np.column_stack([self.weights, V]), n_jobs)
            out, weak = found[:, 1:], np.flatnonzero(found[:, 0] < FAINTER * self.lowest)
            if len(weak):
                out[weak] = self.held.cross(Y[weak], n_jobs).matmat(V)
            return out

        return Cross(matmat, lambda: self.held.kernel.diagonal(rows))


class FourierGram(ComputedGram):
    """K = [κ(x_i − x_j)] through nonuniform FFTs; ``error`` is measured when it is made."""

    name = "fourier"

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        *,
        dtype: DTypeLike = np.float32,
        n_jobs: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        load_finufft()
        rows = X.toarray() if sparse.issparse(X) else X
        super().__init__(kernel, rows, dtype=np.float64, n_jobs=n_jobs, tick=tick)
        self._finer = [facts for facts in PRECISIONS if np.dtype(facts[0]).itemsize >= np.dtype(dtype).itemsize]
        self._set(*self._finer.pop(0))
        self._settle(np.ones(self.n))

    def weigh(self, weights: FloatArray) -> None:
        """Measure with these weights: the error of a product is that of its largest terms."""
        if weights.max() > weights.min():
            self._settle(weights)

    def _settle(self, weights: FloatArray) -> None:
        """Go to finer precisions until the error is what is promised."""
        self._weights = weights
        while not (found := self._measure()).product <= TARGET:
            if not self._finer:
                raise GridError(
                    f"gram='fourier' has {found}, above the {TARGET:g} that it promises: use gram='tiled' (exact) or "
                    "gram='nystroem'."
                )
            self._set(*self._finer.pop(0))
        self.error = found
        self.noise = max(found.product, float(np.finfo(self.dtype).eps))

    def _set(self, dtype: DTypeLike, tolerance: float) -> None:
        self.dtype, self.tolerance = np.dtype(dtype), tolerance
        self._boxes = _Boxes(self.kernel, np.asarray(self.held.rows), self.dtype, tolerance)
        modes = self._boxes.checked_modes()
        require_memory(
            fourier_bytes(self.n, self.held.rows.shape[1], 2, modes, count_threads(self.n_jobs)),
            f"gram='fourier' for {self.n} distinct rows",
            "use gram='nystroem'.",
        )

    def _measure(self) -> ProductError:
        """Products with weights and with random signs, against exact ones, on rows of low degree and on others."""
        random = np.random.RandomState(0)
        V = np.column_stack([self._weights, self._weights * (2.0 * random.randint(0, 2, self.n) - 1)])
        found = self.matmat(V)
        self._lowest = float(found[:, 0].min())
        low = np.argpartition(found[:, 0], min(MEASURED, self.n) - 1)[:MEASURED]
        chosen = np.unique(np.concatenate([low, random.randint(0, self.n, MEASURED)]))
        rows, origin = np.asarray(self.held.rows), np.zeros((1, self.held.rows.shape[1]))

        def work(i: int, pulse: Pulse) -> FloatArray:
            total = np.zeros(2)
            for top in range(0, self.n, PANEL_ROWS):
                some = slice(top, top + PANEL_ROWS)
                # With the row for the origin no digits are lost, however far away it is.
                total += (self.kernel.block(origin, rows[some] - rows[chosen[i]]) @ V[some])[0]
                pulse()
            return total

        true = np.stack(run_groups(work, len(chosen), n_jobs=self.n_jobs))
        errors = np.abs(found[chosen] - true) / np.abs(true[:, :1])
        return ProductError(float(errors.max(initial=0.0)), len(chosen))

    def matmat(self, V: FloatArray) -> FloatArray:
        return self._boxes.multiply(np.asarray(V, dtype=np.float64), self.n_jobs, self.tick)

    def training(self) -> FourierRows:
        return FourierRows(self.held, self.dtype, self.tolerance, self._lowest, self._weights)


def fourier_bytes(n: int, d: int, columns: int, modes: int, threads: int) -> int:
    """Memory of a product: angles, vectors, and for every thread a complex vector, sorted places and the fine grid."""
    return int(8 * n * (2 * d + 2 * columns) + threads * (48 * n + 16 * modes * (1 + 2**d)))
