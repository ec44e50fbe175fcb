"""Arrays where they lie: NumPy's on the host, PyTorch's on its device, and the same code for both.

What the two libraries call alike is written as ``namespace(x).name``; what they do not is here. PyTorch is never
imported: a tensor can only come from someone who has it. Every function that reads a device array from the host
(``to_host``, ``scalars``) waits for the device, so callers bundle what they ask for.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from biclique._typing import Array, FloatArray, IntArray, Rows

PIECE_ROWS = 65_536
"""Rows that are worked on at a time if arrays are very long."""

PIECE_ENTRIES = 2**19
"""Entries of a piece of an array: 4 MiB, which stay in the cache from one step to the next."""

FETCHED_BYTES = 2**26
"""Larger arrays travel between the host and a GPU in pieces of a fourth of this size."""

FETCHERS = 8
"""Threads that copy them."""


def namespace(x: Any) -> Any:
    """The library an array is of: torch for its tensors, else numpy."""
    torch = sys.modules.get("torch")
    return torch if isinstance(x, getattr(torch, "Tensor", ())) else np


def on_host(x: Any) -> bool:
    """True for NumPy arrays, False for tensors, even on the CPU."""
    return namespace(x) is np


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask's, by Dask's own protocol: not by its class, of which there are several."""
    if isinstance(X, type) or not hasattr(X, "__dask_graph__"):
        return False
    return hasattr(X, "partitions") or X.__dask_graph__() is not None  # xarray has the method with any array


def to_host(x: Any) -> NDArray[Any]:
    """The array as NumPy's, as float32 if NumPy lacks the dtype (bfloat16); waits for the device."""
    xp = namespace(x)
    if xp is np:
        return np.asarray(x)
    x = x.detach().resolve_conj().resolve_neg()
    if x.is_floating_point() and x.dtype not in (xp.float16, xp.float32, xp.float64):
        x = x.to(xp.float32)
    if x.device.type == "cuda" and x.nbytes > FETCHED_BYTES:
        return _fetched(x)
    return np.asarray(x.cpu().numpy())


def _fetched(x: Any) -> NDArray[Any]:
    """A large tensor of a GPU as NumPy's."""
    xp = namespace(x)
    out = np.empty(tuple(x.shape), dtype=str(x.dtype).removeprefix("torch."))

    def fetch(piece: slice) -> None:
        out[piece] = xp.empty(x[piece].shape, dtype=x.dtype, pin_memory=True).copy_(x[piece]).numpy()

    _travel(x, fetch)
    return out


def sent(x: NDArray[Any], torch: Any, device: Any) -> Any:
    """NumPy's array as a tensor on a device, a copy in any case: tensors do not know negative strides or read-only."""
    if torch.device(device).type != "cuda" or x.nbytes <= FETCHED_BYTES:
        return torch.tensor(np.ascontiguousarray(x), device=device)
    out = torch.empty(x.shape, dtype=getattr(torch, x.dtype.name), device=device)

    def send(piece: slice) -> None:
        locked = torch.empty(x[piece].shape, dtype=out.dtype, pin_memory=True)
        locked.numpy()[...] = x[piece]
        out[piece].copy_(locked)

    _travel(x, send)
    return out


def _travel(x: Any, copy: Callable[[slice], None]) -> None:
    """Copy a large array piece by piece, in threads, through locked memory: one piece is read while others travel."""
    step = max(FETCHED_BYTES * len(x) // (4 * x.nbytes), 1)
    with ThreadPoolExecutor(FETCHERS) as pool:
        list(pool.map(copy, (slice(top, top + step) for top in range(0, len(x), step))))


def moved(x: Any, like: Any) -> Array:
    """An array on the device of another one, in its own precision; itself if it is there already."""
    xp = namespace(like)
    if xp is np:
        return to_host(x)
    there: Array = sent(np.asarray(x), xp, like.device) if on_host(x) else x.to(like.device)
    return there


def float64(x: Any) -> Array:
    """The array in double precision; itself if it is so already."""
    return as_dtype(x, np.float64)


def as_dtype(x: Any, dtype: DTypeLike) -> Array:
    """The array in a precision by NumPy's name; itself if it has it already."""
    xp = namespace(x)
    return np.asarray(x, dtype=dtype) if xp is np else x.to(getattr(xp, np.dtype(dtype).name))


def scalars(*values: Any) -> list[float]:
    """Numbers on the host, all in one transfer."""
    xp = namespace(values[0])
    return [float(v) for v in values] if xp is np else xp.stack([float64(v) for v in values]).tolist()


def largest_size(x: Any) -> float:
    """max |x|; 0 if x is empty, NaN if x has one."""
    if on_host(x):
        with np.errstate(over="ignore", invalid="ignore"):
            ends = float(np.max(x, initial=0.0)), float(np.min(x, initial=0.0))  # |x| would be a copy of x
            return float(np.max(np.abs(ends)))
    return float(np.max(np.abs(scalars(*x.aminmax())))) if x.numel() else 0.0


def rows_on_host(x: Rows, numbers: IntArray) -> Rows:
    """Some rows, by an array of their numbers, on the host."""
    return x[numbers] if on_host(x) else to_host(x[moved(numbers, x)])


def full(shape: tuple[int, ...], value: float, like: Any) -> Array:
    """An array filled with one number in double precision, on the device of another array."""
    xp = namespace(like)
    return np.full(shape, value) if xp is np else xp.full(shape, value, dtype=xp.float64, device=like.device)


def identity(n: int, like: Any) -> Array:
    """The n × n identity in double precision, on the device of another array."""
    xp = namespace(like)
    return np.eye(n) if xp is np else xp.eye(n, dtype=xp.float64, device=like.device)


def empty_columns(n: int, columns: int, like: Any) -> Array:
    """Room for (n, columns) in double precision, every column contiguous."""
    xp = namespace(like)
    return np.empty((columns, n)).T if xp is np else xp.empty((columns, n), dtype=xp.float64, device=like.device).T


def row_slices(block: Array) -> list[slice]:
    """All rows at once on a device; on the host pieces of them, so that what is made on the way stays small."""
    if not on_host(block):
        return [slice(None)]
    step = max(PIECE_ENTRIES // max(block.shape[1], 1), 1)
    return [slice(top, top + step) for top in range(0, block.shape[0], step)]


@contextmanager
def full_float32(xp: Any) -> Iterator[None]:
    """Hold torch to float32 products: a program may have allowed ten-bit ones (tf32). NumPy has no others."""
    setters: list[tuple[Callable[[str], None], str, str]] = []  # with what is to be set, and what was set before
    if xp is not np:
        try:
            setters = [(xp.set_float32_matmul_precision, "highest", xp.get_float32_matmul_precision())]
        except RuntimeError:  # set backend by backend (torch 2.9 and later), which the one name for all cannot tell
            backends = (xp.backends.cuda.matmul, xp.backends.mkldnn.matmul)
            setters = [(partial(setattr, one, "fp32_precision"), "ieee", one.fp32_precision) for one in backends]
    with ExitStack() as restored:
        for put, full_precision, before in setters:
            put(full_precision)
            restored.callback(put, before)
        yield


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows divided by their lengths; a zero row stays."""
    xp = namespace(rows)
    lengths = xp.sqrt(xp.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / xp.where(lengths > 0, lengths, np.inf)  # type: ignore[no-any-return]


def padded(values: FloatArray, length: int) -> FloatArray:
    """Values with zeros behind them, up to a length; rows of a matrix each."""
    missing = length - values.shape[-1]
    if missing <= 0:
        return values
    xp = namespace(values)
    if xp is not np:
        return xp.nn.functional.pad(values, (0, missing))  # type: ignore[no-any-return]
    out = np.zeros((*values.shape[:-1], length), dtype=values.dtype)  # np.pad takes longer than a small product
    out[..., : values.shape[-1]] = values
    return out
