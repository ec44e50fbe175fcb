"""What a search for settings tries: similarities, orders and scalings of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from biclique.exceptions import ParameterError
from biclique.fit.settings import Affinity, Auto, Settings
from biclique.kernels import GAMMA_KERNELS
from biclique.spectral import ASSIGNERS

FACTORS = (1.0, 0.25, 4.0, 16.0, 64.0)
"""What γ "auto" is multiplied by."""

KERNEL_ORDERS = (2.0, 4.0, np.inf)
WHOLE_ORDERS = (2.0, 3.0, 4.0)
"""For the symmetric modelling."""

GRAPH_ORDERS = (2.0, 2.1, 4.0)
"""For neighbour graphs and for given sparse matrices."""

GRAPHS = ((10, "self_tuning"), (10, "auto"), (5, "auto"), (20, "auto"))
"""Neighbours and weights."""

USUAL_NEIGHBORS = 10
"""The default of ``n_neighbors``: any other number is a wish."""


@dataclass(frozen=True)
class Candidate:
    """Settings that are tried; what is not here stays as it was asked for."""

    affinity: Affinity
    order: Auto
    gamma: Auto = "auto"
    gamma_factor: float | None = None
    """γ is this many times that of the rule; None: γ stays as it was asked for."""
    n_neighbors: int = USUAL_NEIGHBORS
    neighbor_weights: str = "auto"
    row_normalize: bool | str = "auto"

    @property
    def is_graph(self) -> bool:
        """Whether it is a neighbour graph."""
        return self.affinity == "nearest_neighbors"

    @property
    def family(self) -> str:
        """The similarity in words; candidates of one family share K."""
        if self.is_graph:
            kind = "" if self.neighbor_weights == "auto" else f", {self.neighbor_weights} weights"
            return f"nearest_neighbors of {self.n_neighbors}{kind}"
        name = self.affinity if isinstance(self.affinity, str) else "the given kernel"
        return name if self.gamma_factor is None else f"{name}, gamma {self.gamma_factor:g} × auto"

    @property
    def name(self) -> str:
        """All of it in words."""
        order = self.order if isinstance(self.order, str) else f"{self.order:g}"
        rows = "" if isinstance(self.row_normalize, str) else ", unit rows" if self.row_normalize else ", plain rows"
        return f"{self.family}, order {order}{rows}"

    def applied(self, settings: Settings) -> Settings:
        """Settings with these instead of what was to be selected."""
        kernel = replace(settings.kernel, affinity=self.affinity, gamma=self.gamma)
        holding = replace(settings.holding, n_neighbors=self.n_neighbors, neighbor_weights=self.neighbor_weights)
        return replace(
            settings,
            kernel=kernel,
            cut=replace(settings.cut, order=self.order),
            holding=holding,
            assigning=replace(settings.assigning, row_normalize=self.row_normalize),
            gamma_factor=self.gamma_factor,
        )


def make_candidates(settings: Settings, n: int, *, graphs: bool = True, sparse: bool = False) -> list[Candidate]:
    """What is tried for n rows: everything that ``settings`` leave to be selected, the rest as asked for.

    ``graphs`` says whether neighbour graphs are possible, ``sparse`` whether a given matrix is sparse. What cannot be
    together with other parameters is left out.
    """
    selecting, kernel = settings.selecting, settings.unselected.kernel
    named = kernel.affinity if isinstance(kernel.affinity, str) else ""
    if "gamma" in selecting and "affinity" not in selecting and named not in GAMMA_KERNELS:
        raise ParameterError(
            f"gamma='select' needs a kernel with a bandwidth ({', '.join(map(repr, GAMMA_KERNELS))}) or "
            f"affinity='select', not affinity={kernel.affinity!r}: leave gamma at 'auto'."
        )
    found: list[Candidate] = []
    if "affinity" in selecting and graphs:
        found += _graphs(settings, n)
    if kernel.neighbors:
        found += [replace(_as_asked(settings), order=order) for order in _orders(settings, GRAPH_ORDERS)]
    else:
        found += _kernels(settings, GRAPH_ORDERS if sparse else KERNEL_ORDERS)
    return [candidate for candidate in dict.fromkeys(found) if _is_possible(candidate, settings)]


def _as_asked(settings: Settings) -> Candidate:
    """What is selected at its default, the rest as asked for."""
    asked = settings.unselected
    return Candidate(
        asked.kernel.affinity,
        asked.cut.order,
        asked.kernel.gamma,
        None,
        asked.holding.n_neighbors,
        asked.holding.neighbor_weights,
        asked.assigning.row_normalize,
    )


def _orders(settings: Settings, tried: Sequence[float]) -> tuple[Auto, ...]:
    """The orders of one similarity."""
    if "order" not in settings.selecting:
        return (settings.cut.order,)
    return WHOLE_ORDERS if settings.cut.symmetric else tuple(tried)


def _graphs(settings: Settings, n: int) -> list[Candidate]:
    """Neighbour graphs; a number of neighbours or weights that differ from the default are kept."""
    holding = settings.holding
    tried = [
        (holding.n_neighbors if holding.n_neighbors != USUAL_NEIGHBORS else size, weights)
        for size, weights in GRAPHS
        if holding.neighbor_weights in ("auto", weights) or weights == "auto"
    ]
    if holding.neighbor_weights != "auto":
        tried = [(size, holding.neighbor_weights) for size, _ in tried]
    asked = replace(_as_asked(settings), affinity="nearest_neighbors", gamma="auto")
    return [
        replace(asked, order=order, n_neighbors=size, neighbor_weights=weights)
        for size, weights in dict.fromkeys(tried)
        if size <= max(n, USUAL_NEIGHBORS)
        for order in _orders(settings, GRAPH_ORDERS)
    ]


def _kernels(settings: Settings, orders: Sequence[float]) -> list[Candidate]:
    """The kernel at several bandwidths, orders and scalings of rows; the default first."""
    asked = _as_asked(settings)
    factors: tuple[float | None, ...] = FACTORS if "gamma" in settings.selecting else (None,)
    assigning = settings.assigning
    scalings: tuple[bool | str, ...] = (assigning.row_normalize,)
    if assigning.row_normalize == "auto" and ASSIGNERS[assigning.assign_labels].scales_rows:
        scalings = (True, False)
    default = [asked] if "order" in settings.selecting else []
    return default + [
        replace(asked, gamma_factor=factor, order=order, row_normalize=scaled)
        for factor in factors
        for order in _orders(settings, orders)
        for scaled in scalings
    ]


def _is_possible(candidate: Candidate, settings: Settings) -> bool:
    """Whether a candidate goes with the other parameters."""
    try:
        candidate.applied(settings).check()
    except ParameterError:
        return False
    return True
