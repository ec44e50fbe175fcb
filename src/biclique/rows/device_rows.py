"""Rows on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biclique._typing import Device, FloatArray, Rows
from biclique.device.torch_tiles import place_rows
from biclique.rows.array import ArrayRows
from biclique.rows.source import Block
from biclique.runtime.namespace import moved


class DeviceRows(ArrayRows):
    """Rows for a device: an array is copied there once, before the first pass; a tensor that lies there stays.

    Only what is drawn comes to the host.
    """

    def __init__(self, X: Rows, weights: FloatArray, device: Device, names: Sequence[str] | None = None) -> None:
        super().__init__(X, weights, names)
        self.device: Device = device

    def placed(self) -> tuple[Rows, bool]:
        X = place_rows(self.X, self.device)
        return X, X is not self.X

    def _blocks(self) -> Iterator[Block]:
        self.X = self.placed()[0]  # for all passes to come
        yield Block(self.X, moved(self.weights, self.X))
