"""Neighbourhoods on a device of PyTorch: the search for landmarks, and φ of rows as numbers of landmarks.

Nothing of n × p is kept, and no sum depends on the order in which threads of a device finish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from math import ceil, log2
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.neighbors.index import nearest_row
from biclique.neighbors.pairs import FAN, SPARE, unit_scale
from biclique.runtime.namespace import as_dtype, float64, full_float32, moved, namespace, scalars, to_host

Tensor: TypeAlias = Any
"""One of PyTorch, which is not imported."""

PRODUCT_ENTRIES = 2**28
"""Bounds that a device stores at once: 1 GiB in float32."""

KEYS = 2**26
"""Keys of sums that are in memory at once: 1 GiB, with their values."""

DIGITS = 40
"""Bits of the smallest value that count in a sum."""

FAR = 1e38
"""A bound that no row has, for whole groups of a tournament."""


class DeviceSearch:
    """The nearest landmarks of rows on a device, by lower bounds of the squared distances in float32.

    With Triton a product and the choice of its smallest numbers are fused (``device/triton_nearest.py``). Otherwise the
    bounds of some rows are stored, and a tournament finds the smallest, as in ``neighbors/pairs.py``.
    """

    def __init__(self, landmarks: FloatArray, like: Tensor, *, fused: bool | None = None) -> None:
        self.torch = namespace(like)
        Z = np.asarray(landmarks, dtype=np.float64)
        self.p, self.d = Z.shape
        self.offset = Z.mean(axis=0)
        self.scale = unit_scale(Z, self.offset)
        self.slack = 4 * float(np.finfo(np.float32).eps) * (4 + np.sqrt(self.d))
        self._landmarks: Tensor = moved((Z - self.offset) * self.scale, like)
        self._offset: Tensor = moved(self.offset, like)
        self.fused = has_triton(like) if fused is None else fused

    @cached_property
    def _squares(self) -> Tensor:
        """(1 − ε)|z|² of the landmarks."""
        return (1 - self.slack) * (self._landmarks * self._landmarks).sum(1)

    @cached_property
    def _left(self) -> Tensor:
        """The landmarks' side of a product of bounds, up to whole groups of a tournament."""
        torch, p = self.torch, self.p
        left = self._landmarks.new_zeros((-(-p // FAN**2) * FAN**2, self.d + 2))
        left[:, -1] = FAR
        left[:p] = torch.cat([-2 * self._landmarks, torch.ones_like(self._squares[:, None]), self._squares[:, None]], 1)
        return as_dtype(left, np.float32)

    @cached_property
    def _groups(self) -> tuple[Tensor, Tensor]:
        """The landmarks' side of the fused search."""
        found: tuple[Tensor, Tensor] = self._tiles.padded_landmarks(self._landmarks, self._squares)
        return found

    @cached_property
    def _tiles(self) -> Any:
        return import_module("biclique.device.triton_nearest")

    def _fuses(self, count: int) -> bool:
        """Whether so many bounds of a row are found by the fused search."""
        return self.fused and count <= self._tiles.MOST_PICKED

    def in_pieces(self, X: Tensor, r: int, search: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """What a search for r landmarks gives for all rows, as many at once as what it stores fits the memory."""
        stored = max(self.p // FAN, 4 * self.d) if self._fuses(r + 1 + SPARE) else self.p
        step = max(PRODUCT_ENTRIES // stored, 1)
        found = [search(X[top : top + step]) for top in range(0, max(len(X), 1), step)]
        near, certain = (self.torch.cat(parts) for parts in zip(*found, strict=True))
        return near, certain

    def nearest_set(self, X: Tensor, r: int, tie: float, rounding: Tensor | float) -> tuple[Tensor, Tensor]:
        """The r nearest landmarks of rows, ascending, (m, r), and for which rows no other is as near for certain.

        Rows that float32 leaves in doubt are measured in float64.
        """
        if r >= self.p:
            everyone = self.torch.arange(self.p, dtype=self.torch.int32, device=X.device)
            return everyone.repeat(len(X), 1), self.torch.ones(len(X), dtype=self.torch.bool, device=X.device)
        torch = self.torch
        rows = (float64(X) - self._offset) * self.scale
        own = (rows * rows).sum(1)
        rounding = own.new_ones(len(own)) * rounding * self.scale
        low, near = self._bounds(rows, own, r + 1)
        high = (low[:, r - 1] + 8 * self.slack * own) / (1 - 4 * self.slack)
        certain = torch.sqrt(low[:, r]) > torch.sqrt(high) * (1 + tie) + rounding
        near = near[:, :r].contiguous()
        doubt = torch.nonzero(~certain)[:, 0]
        if len(doubt):
            rows = rows[doubt]
            low, some = self._bounds(rows, own[doubt], min(r + 1 + SPARE, self.p))
            apart = rows[:, None, :] - self._landmarks[some]
            gap, order = torch.sort((apart * apart).sum(2), dim=1)
            gap, near[doubt] = torch.sqrt(gap), torch.gather(some, 1, order)[:, :r]
            others = gap[:, r] if low.shape[1] == self.p else torch.minimum(gap[:, r], torch.sqrt(low[:, -1]))
            certain[doubt] = others > gap[:, r - 1] * (1 + tie) + rounding[doubt]
        return torch.sort(near.to(torch.int32), dim=1).values, certain

    def _bounds(self, rows: Tensor, own: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The smallest lower bounds of squared distances, ascending, and their landmarks, (m, count)."""
        torch = self.torch
        if self._fuses(count):
            short: Tensor = as_dtype(rows, np.float32)
            low, near = self._tiles.smallest_bounds(short.contiguous(), *self._groups, count)
            low = float64(low) + (1 - self.slack) * own[:, None]
        else:
            right = torch.cat([rows, (1 - self.slack) * own[:, None], torch.ones_like(own)[:, None]], dim=1)
            with full_float32(torch):
                low, near = smallest(self._left @ as_dtype(right, np.float32).T, count)
        return torch.clip(float64(low), 0.0, None), near


def has_triton(like: Tensor) -> bool:
    """Whether the fused search runs on the device of a tensor."""
    cuda = namespace(like).cuda
    if like.device.type != "cuda" or find_spec("triton") is None:
        return False
    return bool(cuda.get_device_capability(like.device) >= (8, 0))


def nearest_landmark(rows: FloatArray, landmarks: FloatArray, like: Tensor) -> IntArray:
    """The number of the nearest landmark of every row, (m,), found on a device but for ties."""
    search = DeviceSearch(landmarks, like)
    found = search.in_pieces(moved(rows, like), 1, lambda x: search.nearest_set(x, 1, 0.0, 0.0))
    near, certain = (to_host(part) for part in found)
    near, tied = near[:, 0], np.flatnonzero(~certain)
    if len(tied):
        near[tied] = nearest_row(None, rows[tied], landmarks, 1)
    return near


def smallest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` smallest values of every column, ascending, and their rows, (n_columns, count) each."""
    torch = namespace(values)
    levels = [values]
    while len(levels[-1]) > FAN * count and len(levels[-1]) % FAN == 0:
        levels.append(levels[-1].view(FAN, -1, values.shape[1]).amin(0))
    low, places = torch.topk(levels[-1].T.contiguous(), count, dim=1, largest=False)
    columns = torch.arange(values.shape[1], device=values.device)[:, None]
    for level, minima in zip(levels[-2::-1], levels[:0:-1], strict=True):
        groups = len(minima) * torch.arange(FAN, device=values.device)
        members = (places[:, None, :] + groups[:, None]).flatten(1)
        low, found = torch.topk(level.view(-1)[members * level.shape[1] + columns], count, dim=1, largest=False)
        places = torch.gather(members, 1, found)
    return low, places


class Incidence:
    """φ(x) of rows on a device: numbers of landmarks, (m, c), ascending, p if a row has fewer than c."""

    def __init__(self, near: Tensor, entries: Tensor) -> None:
        self.torch = namespace(near)
        self.near, self.entries = near.to(self.torch.int32), entries

    def __abs__(self) -> Incidence:
        return self  # entries are positive

    def __matmul__(self, V: Tensor) -> Tensor:
        torch = self.torch
        table = self.entries[:, None] * (V[:, None] if V.ndim == 1 else V)
        table = torch.cat([table, torch.zeros_like(table[:1])])
        found = torch.nn.functional.embedding_bag(self.near, table, mode="sum")
        return found[:, 0] if V.ndim == 1 else found

    def sums(self, w: Tensor) -> Tensor:
        """Φᵀw, (p,)."""
        return self.entries * self._added(w, len(self.entries) + 1, 1, lambda near: near)[:-1]

    def gram(self, roots: Tensor) -> Tensor:
        """Φᵀ diag(roots²) Φ, (p, p): every row adds to the pairs of its landmarks."""
        p, c = len(self.entries), self.near.shape[1]
        first, second = self.torch.triu_indices(c, c, device=self.near.device)

        def pairs(near: Tensor) -> Tensor:
            return near[:, first] * (p + 1) + near[:, second]

        upper = self._added(roots**2, (p + 1) ** 2, (c + 1) / 2, pairs).view(p + 1, p + 1)[:p, :p]
        return self.entries[:, None] * (upper + self.torch.triu(upper, 1).T) * self.entries

    def _added(self, values: Tensor, size: int, share: float, keys_of: Callable[[Tensor], Tensor]) -> Tensor:
        """Σ of the positive values of rows by key, (size,); a row has ``share`` keys for each of its landmarks.

        Values are added as whole numbers of one or more units, the next one 2⁻ᵇ of the last. That has no rounding, so
        threads may add in any order. Of the smallest value ``DIGITS`` bits count.
        """
        torch, n = self.torch, len(values)
        largest, least = scalars(values.max(), torch.where(values > 0, values, values.max()).min())
        if not largest > 0:
            return torch.zeros(size, dtype=torch.float64, device=values.device)
        bits = 62 - ceil(log2(n + 1))
        unit = 2.0 ** (bits - ceil(log2(largest)))
        parts = ceil((DIGITS + log2(largest / least)) / bits)
        totals = torch.zeros((parts, size), dtype=torch.int64, device=values.device)
        for near, some in self._pieces(values, share):
            keys, rest = keys_of(near), some * unit
            for total in totals:
                whole = torch.floor(rest)
                total.index_add_(0, keys.flatten(), whole.to(torch.int64)[:, None].expand(keys.shape).flatten())
                rest = (rest - whole) * 2.0**bits
        return sum(float64(total) * (2.0 ** (-bits * j) / unit) for j, total in enumerate(totals))

    def links(self) -> sparse.csr_array:
        """Which landmarks some row has together, as far as it takes to tell which are connected, (p, p)."""
        torch, p = self.torch, len(self.entries)
        found = torch.zeros((p + 1) ** 2, dtype=torch.bool, device=self.near.device)
        for near, _ in self._pieces(self.near[:, 0], 1):
            found[(near[:, :1] * (p + 1) + near).flatten()] = True
        first, second = to_host(torch.nonzero(found.view(p + 1, p + 1)[:p, :p])).T
        return sparse.csr_array((np.ones(len(first)), (first, second)), shape=(p, p))

    def _pieces(self, values: Tensor, share: float) -> Iterator[tuple[Tensor, Tensor]]:
        """Numbers of landmarks of some rows, and their values."""
        step = max(int(KEYS / (share * self.near.shape[1])), 1)
        for top in range(0, len(self.near), step):
            yield self.near[top : top + step].to(self.torch.int64), values[top : top + step]
