"""K on a device that PyTorch has: exact products from tiles that are computed, used and forgotten there.

torch and triton are the extra [gpu]; nothing here imports them before an operator is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError, MemoryLimitError, MissingExtraError, ParameterError
from biclique.gram.base import CrossGram, GramOperator
from biclique.gram.cross import HeldRows
from biclique.gram.memory import format_bytes, free_memory
from biclique.gram.threads import Tick
from biclique.kernels import RBF, Cosine, DirectRBF, Kernel, Laplacian, Linear, Polynomial
from biclique.namespace import float64, on_host, to_host

PRECISIONS = ("default", "fast", "float64")
"""Relative errors of a product: 1e-5, some 2e-4 for vectors of mixed signs, and those of float64, by torch's tiles."""
FAST_NOISE = 2e-6
"""The rounding of a "fast" product with a smooth vector."""
ENGINES = ("auto", "triton", "torch")
GPU_KERNELS = ("rbf", "laplacian", "polynomial", "linear", "cosine")

FLOAT32_ERROR = 1e-3
"""Above this bound on the error of a value in float32 tiles are computed in float64, by torch."""
LIFT = 14
"""The fused kernel carries κ as 2¹⁴ κ: half precision then has full digits down to 2⁻²⁸, and 2¹⁵ is still in range."""
MOST_COLUMNS, MOST_VECTORS = 512, 64
"""Columns of X, and vectors at a time, that it takes."""
CHUNK = 64
"""Columns of X in one of its matrix products: more are taken in turns, each sum apart, for registers and rounding."""
TILE_COLUMNS = {"cpu": 1024}
FEWEST_ROWS, MOST_ROWS = 64, {"cpu": 1024}
ON_DEVICE = 8192
"""Rows and columns of a torch tile on an accelerator: a product of that size fills it."""


def load_torch() -> Any:
    """PyTorch, or a line that says how to get it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError("a device needs torch: pip install 'biclique[gpu]'") from error


class TorchGram(GramOperator):
    """K = [κ(x_i, x_j)] as an exact, matrix-free operator on a device.

    With Triton and a CUDA device a product is one fused kernel (``triton_tiles.FusedTiles``). Elsewhere it is torch's
    own operations on tiles in float32: rows I times columns J, the sum over J in float64, tiles cut to the free memory.
    Rows are centred in float64 for kernels that do not see a translation. Where float32 cannot hold the kernel
    (``Kernel.float32_error``), ``engine="auto"`` computes tiles in float64 with torch; ``precision="float64"`` asks for
    them. Rows that are a tensor are held on the device, others on the host as well; a tensor is copied unless it is
    ``owned``.

    ``matmat`` takes a NumPy array and returns one, or a tensor on the device and returns one, float64 in both cases.
    """

    name = "cuda"

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        *,
        device: Any = "cuda",
        precision: str = "default",
        engine: str = "auto",
        tick: Tick | None = None,
        owned: bool = False,
    ) -> None:
        if precision not in PRECISIONS:
            raise ParameterError(f"precision must be one of {', '.join(PRECISIONS)} on a GPU, got {precision!r}.")
        if engine not in ENGINES:
            raise ParameterError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}.")
        if precision == "float64" and engine == "triton":
            raise ParameterError(
                "engine='triton' has no float64: use engine='auto' or 'torch' with precision='float64'."
            )
        check_device_kernel(kernel)
        if sparse.issparse(X):
            raise DataError("gram='cuda' needs dense rows: pass X.toarray(), or use gram='tiled'.")
        self.torch = load_torch()
        self.device = open_device(self.torch, device)
        check_device_precision(precision, self.device)
        self.kernel = kernel
        self.precision = precision
        self.tick = tick
        self.n = X.shape[0]
        if not on_host(X):
            given, X = X, place_rows(X, self.device)
            owned = owned or X is not given
        with self._room("the rows"):
            wide = precision == "float64"
            if not wide:
                self.held = HeldRows(kernel, X, np.float32, owned=owned)
                wide = engine != "triton" and self.device.type != "mps" and _needs_float64(kernel, self.held.rows)
            if wide:
                self.held = HeldRows(kernel, X, np.float64, owned=owned)
        self.dtype = self.held.dtype
        self.engine = choose_engine(engine, kernel, self.device, X.shape[1], wide)
        self._tiles: Any
        if self.engine == "triton":
            self._tiles = import_module("biclique.gram.triton_tiles").FusedTiles(
                kernel, self.device, precision=precision
            )
        else:
            self._tiles = TorchTiles(kernel, self.device, self.dtype)
        with self._room("the rows"):
            self._right = self._tiles.side(self.held.rows, right=True)
            self._left = self._tiles.mirror(self._right, self.held.rows)

    @property
    def nonnegative(self) -> bool:
        return self.kernel.nonnegative(self.held.rows)

    def matmat(self, V: Any) -> Any:
        return self._product(self._left, V, clamp=False)

    def diagonal(self) -> FloatArray:
        return np.asarray(to_host(self.kernel.diagonal(self.held.rows)), dtype=np.float64)

    def cross(self, Y: Rows) -> CrossGram:
        return TorchCross(self, Y)

    def _product(self, left: Any, V: Any, *, clamp: bool) -> Any:
        torch = self.torch
        if V.shape[0] != self.n:
            raise DataError(f"V must have {self.n} rows, one for each row of X, got {V.shape[0]}.")
        on_device = isinstance(V, torch.Tensor)
        if not on_device:  # torch.tensor copies, so that read-only arrays are welcome
            V = np.asarray(V, dtype=np.float32 if self.device.type == "mps" else np.float64)
            with self._room("V"):
                V = torch.tensor(V, device=self.device)
        with torch.no_grad(), full_float32(torch), self._room("a product"):
            out = self._tiles.product(left, self._right, V, clamp=clamp, tick=self.tick)
        return out if on_device else out.cpu().numpy().astype(np.float64, copy=False)

    def _room(self, what: str) -> AbstractContextManager[None]:
        return room_for(what, self.n, self.torch, self.device)


class DeviceGram(GramOperator):
    """A ``TorchGram`` as the solver takes it: tensors on its device in, tensors out, the diagonal among them."""

    name = "cuda"

    def __init__(self, gram: TorchGram) -> None:
        self.gram, self.n, self.dtype, self.held = gram, gram.n, gram.dtype, gram.held

    @property
    def noise(self) -> float:
        return FAST_NOISE if self.gram.precision == "fast" else super().noise

    @property
    def nonnegative(self) -> bool:
        return self.gram.nonnegative

    def matmat(self, V: Any) -> Any:
        return self.gram.matmat(V)

    def diagonal(self) -> Any:
        return place_rows(float64(self.gram.kernel.diagonal(self.held.rows)), self.gram.device)

    def cross(self, Y: Rows) -> CrossGram:
        return self.gram.cross(Y)

    def with_rows(self, Y: Rows) -> DeviceGram:
        rows = self.held.stacked(Y)
        return DeviceGram(
            TorchGram(self.gram.kernel, rows, device=self.gram.device, precision=self.gram.precision, owned=True)
        )

    def normal(self, shape: tuple[int, ...], seed: int) -> Any:
        """Standard normal numbers, drawn on the device."""
        torch = self.gram.torch
        source = torch.Generator(device=self.gram.device).manual_seed(seed)
        return torch.randn(shape, generator=source, dtype=torch.float64, device=self.gram.device)


class TorchCross(CrossGram):
    """κ(y, x) of new rows against the rows of a ``TorchGram``, on its device."""

    def __init__(self, gram: TorchGram, Y: Rows) -> None:
        if sparse.issparse(Y):
            raise DataError("gram='cuda' needs dense rows: pass Y.toarray().")
        self.gram = gram
        with gram._room("new rows"):
            self.rows = gram.held.hold(Y if on_host(Y) else place_rows(Y, gram.device))
            self._left = gram._tiles.side(self.rows, right=False)

    def matmat(self, V: Any) -> Any:
        # New rows may lie far from the training rows, where rounding would lift an exponent above zero.
        return self.gram._product(self._left, V, clamp=True)

    def diagonal(self) -> FloatArray:
        return np.asarray(to_host(self.gram.kernel.diagonal(self.rows)), dtype=np.float64)


def check_device_kernel(kernel: Kernel) -> None:
    """Refuse a kernel of which there are no tiles on a device."""
    if not isinstance(kernel, RBF | DirectRBF | Laplacian | Polynomial | Linear | Cosine):
        raise ParameterError(
            f"the kernel {kernel.name!r} is not there on a GPU ({', '.join(GPU_KERNELS)} are): use gram='tiled'."
        )


def check_device_precision(precision: str, device: Any) -> None:
    """Refuse a precision that a device does not have."""
    if precision == "float64" and device_type(device) == "mps":
        raise ParameterError("device='mps' has no float64: use precision='auto', or the host (device=None).")


def place_rows(X: Any, device: Any) -> Any:
    """A dense array as a tensor on a device, in its own precision; itself where it is one that lies there."""
    torch = load_torch()
    opened = open_device(torch, device)
    with room_for("the rows", X.shape[0], torch, opened):
        # NumPy's are copied: tensors have no negative strides, and do not know read-only memory.
        return X.to(opened) if not on_host(X) else torch.tensor(np.ascontiguousarray(X), device=opened)


@contextmanager
def room_for(what: str, n: int, torch: Any, device: Any) -> Iterator[None]:
    """Turn the device's own error into one that says what to do."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise MemoryLimitError(
            f"{device} has no memory left for {what} ({n} rows, {format_bytes(free_on_device(torch, device))} free): "
            "free some, fit fewer rows, or use gram='tiled'."
        ) from error


def device_type(device: Any) -> str:
    """``"cuda"`` of a device ``"cuda:1"``, or of its name; asks nobody."""
    return str(device).split(":")[0]


def open_device(torch: Any, device: Any) -> Any:
    """The device of a name, if this torch and this machine have it."""
    try:
        opened = torch.device(device)
        torch.empty(1, device=opened)
    except torch.cuda.OutOfMemoryError as error:
        raise MemoryLimitError(f"device {device!r} has no memory left at all.") from error
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ParameterError(
            f"device={device!r} cannot be used here ({str(error).splitlines()[0]}): use 'cpu', or gram='tiled'."
        ) from error
    if opened.type == "meta":
        raise ParameterError("device='meta' cannot be used here (it holds no numbers): use 'cpu', or gram='tiled'.")
    return opened


def choose_engine(requested: str, kernel: Kernel, device: Any, n_columns: int, wide: bool) -> str:
    """``"triton"`` where the fused kernel runs and holds the kernel, ``"torch"`` elsewhere."""
    if requested == "torch" or (requested == "auto" and (device.type != "cuda" or wide)):
        return "torch"
    if find_spec("triton") is None:
        if requested == "triton":
            raise MissingExtraError("engine='triton' needs triton: pip install 'biclique[gpu]'")
        return "torch"
    if requested == "auto" and not (can_fuse(kernel) and n_columns <= MOST_COLUMNS):
        return "torch"
    return "triton"


def can_fuse(kernel: Kernel) -> bool:
    """Whether the fused kernel has this function: powers are taken by multiplication, so their degree is whole."""
    if isinstance(kernel, Polynomial):
        return kernel.degree == int(kernel.degree) and 1 <= kernel.degree <= LIFT and kernel.gamma > 0
    return isinstance(kernel, RBF | Laplacian | Linear | Cosine)


def lie_beside(d: int) -> bool:
    """Whether the halves of rows of d columns are laid side by side in the fused kernel: one product for three."""
    return 3 * d <= 32


def pad_columns(d: int) -> int:
    """d padded to what a matrix product takes: a power of two from 16 to 64, then multiples of 64."""
    return max(16, 1 << (d - 1).bit_length()) if d <= CHUNK else ceil(d / CHUNK) * CHUNK


def pad_vectors(b: int) -> int:
    """The same for vectors: 16, 32 or 64."""
    return max(16, 1 << (b - 1).bit_length())


def _needs_float64(kernel: Kernel, rows: Rows) -> bool:
    return isinstance(kernel, DirectRBF) or kernel.float32_error(rows) > FLOAT32_ERROR


def free_on_device(torch: Any, device: Any) -> int:
    """Bytes that a tensor could still take: the driver's count and what torch holds unused."""
    if device.type == "cuda":
        free = int(torch.cuda.mem_get_info(device)[0])
        return free + int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    return free_memory()


@contextmanager
def full_float32(torch: Any) -> Iterator[None]:
    """Hold torch to float32 products: a program may have allowed ten-bit ones (tf32) everywhere."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # set backend by backend (torch 2.9 and later), which the one name for all cannot tell
        backends = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]
        kept = [backend.fp32_precision for backend in backends]
        for backend in backends:
            backend.fp32_precision = "ieee"
        try:
            yield
        finally:
            for backend, precision in zip(backends, kept, strict=True):
                backend.fp32_precision = precision
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class TorchTiles:
    """Σ_J κ(Y_I, X_J) V_J by torch's own operations, a tile of rows I and columns J at a time.

    The columns of a tile are fixed, so sums do not depend on the memory; its rows are what the free memory
    allows, and half as many after every refusal, down to a floor.
    """

    def __init__(self, kernel: Kernel, device: Any, dtype: Any) -> None:
        self.torch = load_torch()
        self.kernel = kernel
        self.device = device
        self.dtype = self.torch.float64 if np.dtype(dtype) == np.float64 else self.torch.float32
        self.sums = self.torch.float32 if device.type == "mps" else self.torch.float64  # Apple's has no float64
        self.columns = TILE_COLUMNS.get(device.type, ON_DEVICE)

    def side(self, rows: Rows, *, right: bool) -> tuple[Any, Any]:  # noqa: ARG002
        """Rows on the device, with |z|² where the kernel needs it."""
        kernel = self.kernel
        x = place_rows(rows, self.device).to(self.dtype)
        if isinstance(kernel, RBF):
            x = x * float(np.sqrt(kernel.gamma))
            return x, (x * x).sum(1)
        return kernel.left(x) if isinstance(kernel, Cosine) else x, None

    def mirror(self, right: Any, rows: Rows) -> Any:  # noqa: ARG002
        """The same rows as the left side."""
        return right

    def product(self, left: Any, right: Any, V: Any, *, clamp: bool, tick: Tick | None = None) -> Any:  # noqa: ARG002
        """κ(left, right) @ V on the device."""
        torch = self.torch
        n, m = left[0].shape[0], right[0].shape[0]
        V = V.to(self.dtype)
        out = torch.empty((n, V.shape[1]), dtype=self.sums, device=self.device)
        rows = self._first_rows(n, min(m, self.columns))
        top = 0
        while top < n:
            try:
                bottom = min(top + rows, n)
                total = torch.zeros((bottom - top, V.shape[1]), dtype=self.sums, device=self.device)
                for start in range(0, m, self.columns):
                    stop = min(start + self.columns, m)
                    total += self.tile(left, right, slice(top, bottom), slice(start, stop)) @ V[start:stop]
                out[top:bottom] = total
            except (torch.cuda.OutOfMemoryError, RuntimeError) as error:
                if not _is_memory(torch, error):
                    raise
                if rows <= FEWEST_ROWS:
                    raise MemoryLimitError(
                        f"{self.device} has no memory left even for a tile of {rows} × {min(m, self.columns)} kernel "
                        "values: free some, fit fewer rows, or use gram='tiled'."
                    ) from error
                rows = max(rows // 2, FEWEST_ROWS)
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                continue
            top = bottom
            if tick is not None:
                tick(top / n)
        return out

    def _first_rows(self, n: int, columns: int) -> int:
        """Rows of the first tile: a quarter of the free memory holds two tiles and a sum."""
        size = 8 if self.dtype == self.torch.float64 else 4
        fitting = free_on_device(self.torch, self.device) // (4 * 3 * size * max(columns, 1))
        rows = max(min(fitting, MOST_ROWS.get(self.device.type, ON_DEVICE)), FEWEST_ROWS)
        return int(min(1 << (rows.bit_length() - 1), max(n, FEWEST_ROWS)))

    def tile(self, left: Any, right: Any, I: slice, J: slice) -> Any:  # noqa: E741
        """κ(y_i, x_j) for i in I and j in J."""
        torch, kernel = self.torch, self.kernel
        y, x = left[0][I], right[0][J]
        if isinstance(kernel, Laplacian):
            return torch.cdist(y, x, p=1).mul_(-kernel.gamma).exp_()
        if isinstance(kernel, DirectRBF):
            mode = "donot_use_mm_for_euclid_dist"
            return torch.cdist(y, x, compute_mode=mode).square_().mul_(-kernel.gamma).exp_()
        inner = y @ x.T
        if isinstance(kernel, RBF):
            # Rounding can lift an exponent above zero.
            inner.mul_(2).sub_(left[1][I, None]).sub_(right[1][J]).clamp_(max=0)
        elif isinstance(kernel, Polynomial):
            inner.mul_(kernel.gamma).add_(kernel.coef0)
        return kernel.finish(inner)  # type: ignore[attr-defined]


def _is_memory(torch: Any, error: BaseException) -> bool:
    """Whether torch ran out of memory: an error of its own on accelerators, a plain one with a text on the CPU."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)
