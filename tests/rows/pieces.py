"""Rows in memory that are passed over in pieces of any length."""

from biclique.rows.array import ArrayRows, Block


class PieceRows(ArrayRows):
    """Blocks of a size."""

    size = 100

    @classmethod
    def cut(cls, X, w, size):
        found = cls(X, w)
        found.size = size
        return found

    def _blocks(self):
        for top in range(0, self.n_rows, self.size):
            yield Block(self.X[top : top + self.size], self.weights[top : top + self.size], top)
