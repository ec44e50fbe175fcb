"""K through nonuniform FFTs, for rows of one to three columns: a product costs O(n + N^d log N), not O(n²).

On a box of sides L_a that holds the rows and, beside them, the reach of the kernel,

    κ(x − y) = Σ_k c_k exp(2πi Σ_a k_a (x_a − y_a) / L_a),   c_k = κ̂(2π k/L) / Π_a L_a,

up to ε: what wraps around the box is below κ(reach) = ε, and so is what is left out beyond |2π k_a/L_a| = cutoff, where
κ̂ has fallen to ε of its largest value. So K V = F* diag(c) F V, with F and F* by finufft (the extra [fourier]).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ParameterError, optional
from biclique.gram.computed import ComputedGram
from biclique.gram.operator import Cross, CrossGram
from biclique.kernels.held import HeldRows
from biclique.kernels.kernel import Kernel
from biclique.kernels.named import DirectRBF
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
    return optional("finufft", "gram='fourier' needs finufft: pip install '.[fourier]' in a clone of biclique")


def gamma_of(kernel: Kernel, n_columns: int) -> float:
    """γ of κ(x − y) = exp(−γ |x − y|²), or why the kernel has no grid."""
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
    return kernel.form.gamma


def density(gamma: float, n_columns: int, squared: FloatArray) -> FloatArray:
    """κ̂(ω) = (π/γ)^(d/2) exp(−|ω|²/(4γ)), as a function of |ω|²."""
    return np.asarray((np.pi / gamma) ** (n_columns / 2) * np.exp(-squared / (4 * gamma)))


def reach_of(gamma: float, tolerance: float) -> float:
    """|z| beyond which κ(z) is below the tolerance."""
    return float(np.sqrt(-np.log(tolerance) / gamma))


@dataclass(frozen=True)
class Grid:
    """The modes of one box that holds some rows."""

    middle: FloatArray  # (d,)
    sides: FloatArray  # L, (d,)
    highest: IntArray  # (d,), k runs from −highest to highest

    @classmethod
    def of(cls, gamma: float, rows: FloatArray, tolerance: float) -> Grid:
        """Of as many modes as the tolerance asks for."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        sides = high - low + reach_of(gamma, tolerance)
        cutoff = 2 * np.sqrt(-np.log(tolerance) * gamma)
        highest = np.ceil(sides * cutoff / (2 * np.pi))
        modes = np.prod(2 * highest + 1)
        if modes > MOST_MODES:
            raise GridError(
                f"gram='fourier' would need a grid of {modes:.2g} modes, at most {MOST_MODES}: rows spread too far for "
                f"this bandwidth; use gram='tiled' (exact) or gram='nystroem', or lower gamma."
            )
        return cls((low + high) / 2, sides, highest.astype(int))

    @property
    def modes(self) -> tuple[int, ...]:
        """How many in every column."""
        return tuple((2 * self.highest + 1).tolist())

    def coefficients(self, gamma: float) -> FloatArray:
        """c, of the shape of the modes."""
        steps = [np.arange(-m, m + 1) * (2 * np.pi / side) for m, side in zip(self.highest, self.sides, strict=True)]
        squared = sum(np.meshgrid(*[omega**2 for omega in steps], indexing="ij", sparse=True))
        return density(gamma, len(self.sides), np.asarray(squared)) / np.prod(self.sides)


class _Transform:
    """diag(c), F and F* of the rows of one box, one thread each: bits do not depend on how many there are."""

    def __init__(self, grid: Grid, gamma: float, rows: FloatArray, dtype: np.dtype[Any], tolerance: float) -> None:
        self.finufft = load_finufft()
        self.modes, self.tolerance = grid.modes, tolerance
        self.complex = "complex64" if dtype == np.float32 else "complex128"
        self._coefficients = grid.coefficients(gamma).astype(dtype)
        angles = (rows - grid.middle) * (2 * np.pi / grid.sides)
        self._points = [np.ascontiguousarray(column, dtype=dtype) for column in angles.T]
        self._plans: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

    def _plan(self, kind: int, sign: int) -> Any:
        plan = self.finufft.Plan(kind, self.modes, 1, self.tolerance, sign, self.complex, nthreads=1, modeord=0)
        plan.setpts(*self._points)
        return plan

    def multiply(self, V: FloatArray) -> tuple[FloatArray, ...]:
        """K of one or two real vectors, which are the parts of a complex one: K is real."""
        try:
            there, back = self._plans.get_nowait()
        except Empty:
            there, back = self._plan(1, -1), self._plan(2, 1)
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

    def __init__(
        self, kernel: Kernel, rows: FloatArray, dtype: DTypeLike, tolerance: float, n_jobs: int | None
    ) -> None:
        self.n_jobs, gamma = n_jobs, gamma_of(kernel, rows.shape[1])
        members = far_apart(rows, reach_of(gamma, tolerance))
        large = [some for some in members if len(some) > FEW_ROWS]
        self.large = [slice(None) if len(some) == len(rows) else some for some in large]  # all of them without a copy
        grids = [Grid.of(gamma, rows[some], tolerance) for some in self.large]
        modes = max((int(np.prod(grid.modes)) for grid in grids), default=1)
        require_memory(
            fourier_bytes(len(rows), rows.shape[1], 2, modes, count_threads(n_jobs)),
            f"gram='fourier' for {len(rows)} distinct rows",
            "use gram='nystroem'.",
        )
        self._transforms = [
            _Transform(grid, gamma, rows[some], np.dtype(dtype), tolerance)
            for grid, some in zip(grids, self.large, strict=True)
        ]
        few = members[len(large) :]
        self.few = np.concatenate([np.empty(0, dtype=np.intp), *few])
        near = [rows[some] - rows[some[0]] for some in few]  # far away, digits would be lost
        blocks = [kernel.block(some, some) for some in near]
        self._among_few = sparse.block_diag(blocks, format="csr") if blocks else None

    def multiply(self, V: FloatArray, tick: Tick | None = None) -> FloatArray:
        """K V."""
        out = np.zeros(V.shape, order="F")
        if self._among_few is not None:
            out[self.few] = self._among_few @ V[self.few]
        tasks = list(product(range(len(self.large)), range(0, V.shape[1], 2)))

        def work(task: int, pulse: Pulse) -> None:
            box, first = tasks[task]
            some = self.large[box]
            for j, column in enumerate(self._transforms[box].multiply(V[some, first : first + 2]), first):
                out[some, j] = column
            pulse()

        run_groups(work, len(tasks), n_jobs=self.n_jobs, total=max(len(tasks), 1), tick=tick)
        return out


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


@dataclass(frozen=True)
class FourierRows:
    """The training rows as a model keeps them."""

    held: HeldRows
    dtype: np.dtype[Any]
    tolerance: float
    weights: FloatArray  # (n,)
    lowest: float
    """The least degree, with these weights: the error is known down to it."""

    @property
    def rows(self) -> Rows:
        return self.held.rows

    def hold(self, Y: Rows) -> Rows:
        return self.held.hold(Y)

    def cross(self, Y: Rows, n_jobs: int | None = None) -> CrossGram:
        """New rows against these: one by one if they are few or no grid holds them, else through grids."""
        if float(Y.shape[0]) * self.rows.shape[0] > DIRECT_PAIRS:
            try:
                return self.by_grid(Y, n_jobs)
            except GridError:
                pass
        return self.held.cross(Y, n_jobs)

    def by_grid(self, Y: Rows, n_jobs: int | None) -> CrossGram:
        """κ(Y, X) V as the last rows of K of all rows, times V with zeros below it.

        A grid's error is too large for rows of far lower degree than any training row: these are computed one by one.
        """
        n, new = self.rows.shape[0], np.asarray(self.hold(Y))
        boxes = _Boxes(self.held.kernel, np.concatenate([self.rows, new]), self.dtype, self.tolerance, n_jobs)

        def matmat(V: FloatArray) -> FloatArray:
            given = np.zeros((n + len(new), 1 + V.shape[1]))
            given[:n] = np.column_stack([self.weights, V])
            found = boxes.multiply(given)[n:]
            out, weak = found[:, 1:], np.flatnonzero(found[:, 0] < FAINTER * self.lowest)
            if len(weak):
                out[weak] = self.held.cross(Y[weak], n_jobs).matmat(V)
            return out

        return Cross(matmat, lambda: self.held.kernel.diagonal(new))


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
        self._set_precision()
        self._settle(np.ones(self.n))

    def weigh(self, weights: FloatArray) -> None:
        """Measure with these weights: the error of a product is that of its largest terms."""
        if weights.max() > weights.min():
            self._settle(weights)

    def _settle(self, weights: FloatArray) -> None:
        """Go to finer precisions until the error is what is promised."""
        while not (found := self._measure(weights)).product <= TARGET:
            if not self._finer:
                raise GridError(
                    f"gram='fourier' has {found}, above the {TARGET:g} that it promises: use gram='tiled' (exact) or "
                    "gram='nystroem'."
                )
            self._set_precision()
        self.error = found
        self.noise = max(found.product, float(np.finfo(self.dtype).eps))

    def _set_precision(self) -> None:
        """Take the next precision, and make grids for it."""
        dtype, self.tolerance = self._finer.pop(0)
        self.dtype = np.dtype(dtype)
        self._boxes = _Boxes(self.kernel, np.asarray(self.held.rows), self.dtype, self.tolerance, self.n_jobs)

    def _measure(self, weights: FloatArray) -> ProductError:
        """Products with weights and with random signs, against exact ones, on rows of low degree and on others."""
        random = np.random.RandomState(0)
        V = np.column_stack([weights, weights * (2.0 * random.randint(0, 2, self.n) - 1)])
        found = self.matmat(V)
        self._kept = FourierRows(self.held, self.dtype, self.tolerance, weights, float(found[:, 0].min()))
        low = np.argpartition(found[:, 0], min(MEASURED, self.n) - 1)[:MEASURED]
        chosen = np.unique(np.concatenate([low, random.randint(0, self.n, MEASURED)]))
        direct = DirectRBF(gamma_of(self.kernel, self.held.rows.shape[1]))
        true = HeldRows(direct, self.held.rows, np.float64).cross(self.held.rows[chosen], self.n_jobs).matmat(V)
        errors = np.abs(found[chosen] - true) / np.abs(true[:, :1])
        return ProductError(float(errors.max(initial=0.0)), len(chosen))

    def matmat(self, V: FloatArray) -> FloatArray:
        return self._boxes.multiply(np.asarray(V, dtype=np.float64), self.tick)

    def training(self) -> FourierRows:
        return self._kept


def fourier_bytes(n: int, d: int, columns: int, modes: int, threads: int) -> int:
    """Memory of a product: angles, vectors, and for every thread a complex vector, sorted places and the fine grid."""
    return int(8 * n * (2 * d + 2 * columns) + threads * (48 * n + 16 * modes * (1 + 2**d)))
