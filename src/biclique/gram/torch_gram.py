"""K on a device that PyTorch has: exact products from tiles that are computed, used and forgotten there.

torch and triton are the extra [gpu]; nothing here imports them before an operator is made.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import Array, Device, Rows
from biclique.device.torch_tiles import (
    TorchTiles,
    check_device_kernel,
    check_device_precision,
    choose_engine,
    load_torch,
    open_device,
    place_rows,
    room_for,
)
from biclique.exceptions import DataError, ParameterError
from biclique.gram.computed import ComputedGram
from biclique.gram.operator import Cross, CrossGram
from biclique.kernels.held import FLOAT32_ERROR, HeldRows, float32_error
from biclique.kernels.kernel import Kernel
from biclique.runtime.namespace import float64, full_float32, on_host, to_host
from biclique.runtime.threads import Tick

PRECISIONS = ("float32", "fast", "float64")
"""Relative errors of a product: 1e-5, some 2e-4 for vectors of mixed signs, and those of float64, by torch's tiles."""

FAST_NOISE = 2e-6
"""The rounding of a "fast" product with a smooth vector."""

ENGINES = ("auto", "triton", "torch")


class TorchGram(ComputedGram):
    """K = [κ(x_i, x_j)] as an exact, matrix-free operator on a device.

    With Triton and a CUDA device a product is one fused kernel (``triton_tiles.FusedTiles``). Elsewhere it is torch's
    own operations on tiles in float32: rows I times columns J, the sum over J in float64, tiles cut to the free memory.
    Rows are centred in float64 for kernels that do not see a translation. If float32 is too coarse for the kernel
    (``float32_error``), ``engine="auto"`` computes tiles in float64 with torch; ``precision="float64"`` asks for
    them. Rows that are a tensor are stored on the device, others on the host as well; a tensor is copied unless it is
    ``owned``.

    ``matmat`` takes a tensor on the device and returns one, or a NumPy array and returns one, float64 in both cases.
    The diagonal is a tensor there. ``name`` is "cuda" on such a device, else "torch".
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        *,
        device: Device = "cuda",
        precision: str = "float32",
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
        check_device_precision(precision, device)
        if sparse.issparse(X):
            raise DataError(
                f"device={str(device)!r} needs dense rows: pass X.toarray(), or use the host (device=None)."
            )
        self.torch = load_torch()
        self.device = open_device(self.torch, device)
        self.name = "cuda" if self.device.type == "cuda" else "torch"
        self.like = self.torch.empty(0, device=self.device)
        self._requested, self.n = engine, X.shape[0]
        self.kernel, self.precision, self.tick = kernel, precision, tick
        if not on_host(X):
            given, X = X, place_rows(X, self.device)
            owned = owned or X is not given
        with self._room("the rows"):
            wide = precision == "float64"
            if not wide:
                self.held = HeldRows(kernel, X, np.float32, owned=owned)
                fits = engine == "triton" or self.device.type == "mps"
                wide = not fits and float32_error(self.held, X) > FLOAT32_ERROR
            if wide:
                self.held = HeldRows(kernel, X, np.float64, owned=owned)
        self.dtype = self.held.dtype
        self.noise = FAST_NOISE if precision == "fast" else float(np.finfo(self.dtype).eps)
        self.engine = choose_engine(engine, kernel, self.device, X.shape[1], wide)
        self._tiles: Any
        if self.engine == "triton":
            self._tiles = import_module("biclique.device.triton_tiles").FusedTiles(
                kernel, self.device, precision=precision
            )
        else:
            self._tiles = TorchTiles(kernel, self.device, self.dtype)
        with self._room("the rows"):
            self._right = self._tiles.side(self.held.rows, right=True)
            self._left = self._tiles.mirror(self._right, self.held.rows)

    def diagonal(self) -> Any:
        return place_rows(float64(self.kernel.diagonal(self.held.rows)), self.device)

    def cross(self, Y: Rows) -> CrossGram:
        if sparse.issparse(Y):
            raise DataError(f"device={str(self.device)!r} needs dense rows: pass Y.toarray().")
        with self._room("new rows"):
            rows = self.held.hold(Y if on_host(Y) else place_rows(Y, self.device))
            left = self._tiles.side(rows, right=False)
        # New rows may lie far from the training rows, where rounding would lift an exponent above zero.
        return Cross(
            partial(self._product, partial(self._tiles.product, left, self._right, clamp=True)),
            lambda: np.asarray(to_host(self.kernel.diagonal(rows)), dtype=np.float64),
        )

    def normal(self, shape: tuple[int, ...], seed: int) -> Any:
        """Standard normal numbers, drawn on the device."""
        source = self.torch.Generator(device=self.device).manual_seed(seed)
        return self.torch.randn(shape, generator=source, dtype=self.torch.float64, device=self.device)

    def matmat(self, V: Array) -> Array:
        return self._product(partial(self._tiles.product, self._left, self._right, clamp=False), V)

    def _product(self, multiply: Callable[..., Array], V: Array) -> Array:
        """A product with V on the device, wherever V is."""
        torch = self.torch
        if V.shape[0] != self.n:
            raise DataError(f"V must have {self.n} rows, one for each row of X, got {V.shape[0]}.")
        on_device = isinstance(V, torch.Tensor)
        if not on_device:  # torch.tensor copies, so that read-only arrays are welcome
            V = np.asarray(V, dtype=np.float32 if self.device.type == "mps" else np.float64)
            with self._room("V"):
                V = torch.tensor(V, device=self.device)
        with torch.no_grad(), full_float32(torch), self._room("a product"):
            out = multiply(V, tick=self.tick)
        return out if on_device else to_host(out).astype(np.float64, copy=False)

    def _room(self, what: str) -> AbstractContextManager[None]:
        return room_for(what, self.n, self.torch, self.device)
