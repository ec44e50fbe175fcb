"""Tiles of K by PyTorch's own operations, and what a device can do.

torch and triton are the extra [gpu]; nothing here imports them before an operator is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from math import ceil
from typing import Any

import numpy as np

from biclique._typing import Rows
from biclique.exceptions import MemoryLimitError, MissingExtraError, ParameterError, optional
from biclique.kernels.held import near_one
from biclique.kernels.kernel import Form, Kernel
from biclique.kernels.named import power
from biclique.runtime.memory import format_bytes, free_memory
from biclique.runtime.namespace import on_host, sent, unit_rows
from biclique.runtime.threads import Tick

LIFT = 14
"""The fused kernel carries κ as 2¹⁴ κ: half precision then has full digits down to 2⁻²⁸, and 2¹⁵ is still in range."""

MOST_COLUMNS, MOST_VECTORS, FEWEST_VECTORS = 512, 64, 16
"""Columns of X, and vectors at a time, that it takes."""

CHUNK = 64
"""Columns of X in one of its matrix products: more are taken in turns, each sum apart, for registers and rounding."""

TILE_COLUMNS = {"cpu": 1024}

FEWEST_ROWS, MOST_ROWS = 64, {"cpu": 1024}

FREE_SOME = "free some, fit fewer rows, or use the host (device=None)."
"""The way out if a device has no memory left."""

ON_DEVICE = 8192
"""Rows and columns of a torch tile on an accelerator: a product of that size fills it."""


def load_torch() -> Any:
    """PyTorch, or a line that says how to get it."""
    return optional("torch", "a device needs torch: pip install '.[gpu]' in a clone of biclique")


def has_tiles(kernel: Kernel) -> bool:
    """Whether tiles on a device compute this kernel."""
    return kernel.form is not None and kernel.form.function != "tanh"


def check_device_kernel(kernel: Kernel) -> Form:
    """The function that tiles on a device compute; refuse a kernel that they do not know."""
    if kernel.form is None or not has_tiles(kernel):
        raise ParameterError(
            f"the kernel {kernel.name!r} is not supported on a GPU (rbf, laplacian, polynomial, linear, cosine are): "
            "use the host (device=None)."
        )
    return kernel.form


def check_device_precision(precision: str, device: Any) -> None:
    """Refuse a precision that a device does not have."""
    if precision == "float64" and device_type(device) == "mps":
        raise ParameterError("device='mps' has no float64: use precision='auto', or the host (device=None).")


def place_rows(X: Any, device: Any) -> Any:
    """A dense array as a tensor on a device, in its own precision; itself if it is one there already."""
    torch = load_torch()
    opened = open_device(torch, device)
    with room_for("the rows", X.shape[0], torch, opened):
        return X.to(opened) if not on_host(X) else sent(X, torch, opened)


@contextmanager
def room_for(what: str, n: int, torch: Any, device: Any) -> Iterator[None]:
    """Turn the device's own error into one that says what to do."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        free = format_bytes(free_on_device(torch, device))
        raise MemoryLimitError(
            f"{device} has no memory left for {what} ({n} rows, {free} free): {FREE_SOME}"
        ) from error


def in_pieces(n: int, size: int, least: int, work: Callable[[slice], None], device: Any, needed: str) -> None:
    """``work`` on pieces of n, half as long after every refusal of memory; an error of ours if the least is refused."""
    torch, top = load_torch(), 0
    while top < n:
        place = slice(top, min(top + size, n))
        try:
            work(place)
        except RuntimeError as error:
            # Accelerators have an error of their own, the CPU a plain one with a text.
            if not (isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)):
                raise
            if size <= least:
                raise MemoryLimitError(f"{device} has no memory left even for {needed}: {FREE_SOME}") from error
            size = max(size // 2, least)
        else:
            top = place.stop
            continue
        torch.cuda.empty_cache()  # what the error still referred to is free by now


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
            f"device={device!r} cannot be used here ({str(error).splitlines()[0]}): use 'cpu', or device=None."
        ) from error
    if opened.type == "meta":
        raise ParameterError("device='meta' cannot be used here (it holds no numbers): use 'cpu', or device=None.")
    return opened


def choose_engine(requested: str, kernel: Kernel, device: Any, n_columns: int, wide: bool) -> str:
    """``"triton"`` if the fused kernel runs here and knows the kernel, else ``"torch"``."""
    if requested == "torch" or (requested == "auto" and (device.type != "cuda" or wide)):
        return "torch"
    if find_spec("triton") is None:
        if requested == "triton":
            raise MissingExtraError("engine='triton' needs triton: pip install '.[gpu]' in a clone of biclique")
        return "torch"
    if requested == "auto" and not (can_fuse(kernel) and n_columns <= MOST_COLUMNS):
        return "torch"
    return "triton"


def can_fuse(kernel: Kernel) -> bool:
    """Whether the fused kernel has this function: powers are taken by multiplication, so their degree is whole."""
    form = kernel.form
    if form is None or form.direct or not has_tiles(kernel):
        return False
    return form.function != "power" or (form.degree in range(1, LIFT + 1) and form.gamma > 0)


def lie_beside(d: int) -> bool:
    """Whether the halves of rows of d columns are laid side by side in the fused kernel: one product for three."""
    return 3 * d <= 32


def pad_size(d: int) -> int:
    """Columns or vectors padded to what a matrix product takes: a power of two from 16 to 64, then multiples of 64."""
    return max(16, 1 << (d - 1).bit_length()) if d <= CHUNK else ceil(d / CHUNK) * CHUNK


def free_on_device(torch: Any, device: Any) -> int:
    """Bytes that a tensor could still take: the driver's count and what torch holds unused."""
    if device.type == "cuda":
        free = int(torch.cuda.mem_get_info(device)[0])
        return free + int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    return free_memory()


class TorchTiles:
    """Σ_J κ(Y_I, X_J) V_J by torch's own operations, a tile of rows I and columns J at a time.

    The columns of a tile are fixed, so sums do not depend on the memory; its rows are what the free memory
    allows, and half as many after every refusal, down to a floor.
    """

    def __init__(self, kernel: Kernel, device: Any, dtype: Any) -> None:
        self.torch, self.device = load_torch(), device
        self.form = check_device_kernel(kernel)
        self.dtype = self.torch.float64 if np.dtype(dtype) == np.float64 else self.torch.float32
        self.sums = self.torch.float32 if device.type == "mps" else self.torch.float64  # Apple's has no float64
        self.columns = TILE_COLUMNS.get(device.type, ON_DEVICE)

    def side(self, rows: Rows, *, right: bool) -> tuple[Any, Any]:  # noqa: ARG002
        """Rows on the device as ``tile`` takes them, and a number for each of rbf, or None."""
        X = place_rows(rows, self.device).to(self.dtype)
        if self.form.unit:
            near: Any = near_one(X)  # else squares would vanish or overflow
            return unit_rows(near), None
        if self.form.function != "gauss" or self.form.direct:
            return X, None
        Z = X * float(np.sqrt(self.form.gamma))
        return Z, (Z * Z).sum(1)

    def mirror(self, right: Any, rows: Rows) -> Any:  # noqa: ARG002
        """The same rows as the left side."""
        return right

    def product(self, left: Any, right: Any, V: Any, *, clamp: bool, tick: Tick | None = None) -> Any:  # noqa: ARG002
        """κ(left, right) @ V on the device."""
        torch = self.torch
        n, m = left[0].shape[0], right[0].shape[0]
        V = V.to(self.dtype)
        out = torch.empty((n, V.shape[1]), dtype=self.sums, device=self.device)

        def multiply(I: slice) -> None:  # noqa: E741
            total = torch.zeros((I.stop - I.start, V.shape[1]), dtype=self.sums, device=self.device)
            for start in range(0, m, self.columns):
                J = slice(start, min(start + self.columns, m))
                total += self.tile(left, right, I, J) @ V[J]
            out[I] = total
            if tick is not None:
                tick(I.stop / n)

        columns = min(m, self.columns)
        needed = f"a tile of {FEWEST_ROWS} × {columns} kernel values"
        in_pieces(n, self._first_rows(n, columns), FEWEST_ROWS, multiply, self.device, needed)
        return out

    def _first_rows(self, n: int, columns: int) -> int:
        """Rows of the first tile: a quarter of the free memory holds two tiles and a sum."""
        size = 8 if self.dtype == self.torch.float64 else 4
        fitting = free_on_device(self.torch, self.device) // (4 * 3 * size * max(columns, 1))
        rows = max(min(fitting, MOST_ROWS.get(self.device.type, ON_DEVICE)), FEWEST_ROWS)
        return int(min(1 << (rows.bit_length() - 1), max(n, FEWEST_ROWS)))

    def tile(self, left: Any, right: Any, I: slice, J: slice) -> Any:  # noqa: E741
        """κ(y_i, x_j) for i in I and j in J."""
        (Y, y_own), (X, x_own), form = left, right, self.form
        Y, X = Y[I], X[J]
        if form.function == "manhattan":
            return self.torch.cdist(Y, X, p=1).mul_(-form.gamma).exp_()
        if form.direct:
            gaps = self.torch.cdist(Y, X, compute_mode="donot_use_mm_for_euclid_dist")
            return gaps.square_().mul_(-form.gamma).exp_()
        inner = Y @ X.T
        if form.function == "gauss":  # rounding can lift an exponent above zero
            inner.mul_(2).sub_(y_own[I, None]).sub_(x_own[J]).clamp_(max=0).exp_()
        if form.function == "power":
            inner.mul_(form.gamma).add_(form.coef0)
            return power(inner, form.degree)
        return inner
