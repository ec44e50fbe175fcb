"""A row source of one's own: rows in pieces of any lengths."""

import numpy as np

from biclique.rows.array import Block, RowSource, drawn
from biclique.runtime.namespace import rows_on_host, to_host


class PieceRows(RowSource):
    """Rows given as a list of (rows, weights)."""

    def __init__(self, pieces):
        self.pieces = list(pieces)
        self.n_columns = int(self.pieces[0][0].shape[1])
        self.weights = np.concatenate([to_host(weights) for _, weights in self.pieces])

    @classmethod
    def cut(cls, X, w, size):
        """One array, in pieces of a size."""
        return cls((X[top : top + size], w[top : top + size]) for top in range(0, len(X), size))

    @property
    def n_rows(self):
        return sum(int(rows.shape[0]) for rows, _ in self.pieces)

    def draw(self, size, random):
        numbers, first, found = drawn(self.weights, size, random), 0, []
        for rows, weights in self.pieces:
            some = numbers[(numbers >= first) & (numbers < first + rows.shape[0])] - first
            found.append((rows_on_host(rows, some), to_host(weights)[some]))
            first += rows.shape[0]
        return np.concatenate([rows for rows, _ in found]), np.concatenate([weights for _, weights in found])

    def _blocks(self):
        first = 0
        for rows, weights in self.pieces:
            yield Block(rows, weights, first)
            first += rows.shape[0]
