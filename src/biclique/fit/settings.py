"""Settings: the parameters of an estimator, typed, and checked once by one table of constraints.

Nothing below the estimators' own files sees an estimator: it sees these.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from numbers import Integral
from types import NoneType
from typing import Any, cast

from biclique._typing import RandomState
from biclique.exceptions import ParameterError
from biclique.features.maps import FEATURE_MAPS
from biclique.features.neighborhoods import METRICS
from biclique.gram.by_name import GRAMS
from biclique.kernels.gamma_rules import GAMMA_RULES
from biclique.kernels.gower import Columns, Gower
from biclique.kernels.kernel import Kernel
from biclique.kernels.named import KERNEL_NAMES, KERNELS, make_kernel
from biclique.runtime.arguments import (
    MOST_STARTS,
    Names,
    check_choice,
    check_count,
    check_flag,
    check_jobs,
    check_number,
    check_random,
    fixed_seed,
    is_number,
    require,
)
from biclique.spectral.assign import ASSIGNERS
from biclique.spectral.cut import ORDERS, SYMMETRIC_ORDERS, check_order

FACTORED = Names(lambda: (*(name for name, kind in FEATURE_MAPS.items() if kind.by_name), "features"))
"""What ``gram`` may be for an approximate K = ΦΦᵀ."""

GRAM_NAMES = Names(lambda: ("auto", *GRAMS, *FACTORED))
"""What ``gram`` may be."""

PRECISIONS = ("auto", "float32", "float64", "fast")
EIGEN_SOLVERS = ("auto", "krylov", "arpack", "lobpcg", "amg")
MODELLINGS = ("biclique", "symmetric")
PRECOMPUTED = ("precomputed", "precomputed_nearest_neighbors")
NEIGHBOR_AFFINITIES = ("nearest_neighbors", "precomputed_nearest_neighbors")
NEIGHBORHOODS = "neighborhoods"
"""The default affinity."""

DEVICES = ("cpu", "cuda", "mps", "xpu")

SELECT = "select"
"""The word for what a search chooses (``biclique.selection``); "auto" is a fixed rule."""

Affinity = str | Kernel | Callable[..., float]
Auto = float | str
"""A number, or the name of a rule."""


@dataclass(frozen=True)
class KernelSettings:
    """Which similarity."""

    affinity: Affinity = NEIGHBORHOODS
    gamma: Auto = "auto"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None

    @property
    def given(self) -> bool:
        """Whether X is a matrix of similarities or distances."""
        return self.affinity in PRECOMPUTED

    @property
    def neighbors(self) -> bool:
        """Whether K is a neighbour graph."""
        return self.affinity in NEIGHBOR_AFFINITIES

    @property
    def neighborhoods(self) -> bool:
        """Whether K is that of the hypergraph of neighbourhoods."""
        return self.affinity == NEIGHBORHOODS

    @property
    def of_rows(self) -> bool:
        """Whether K is a kernel of rows."""
        return not (self.given or self.neighbors or self.neighborhoods)

    @property
    def metric(self) -> str:
        """How neighbourhoods measure distances."""
        asked = (self.kernel_params or {}).get("metric", METRICS[0])
        return asked.name if isinstance(asked, Gower) else str(asked)

    @property
    def measure(self) -> str:
        """The parameter that says how rows are compared, for messages."""
        return f"the metric {self.metric!r}" if self.neighborhoods else f"affinity={self.affinity!r}"

    def kernel(self, gamma: float | None = None, columns: Columns | None = None) -> Kernel:
        """The kernel with a γ and what it must know of the columns; to ask what it can do, without."""
        return make_kernel(
            self.affinity,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            columns=columns,
        )

    def gower(self, columns: Columns | None = None) -> Gower:
        """The Gower kernel that was asked for, as the affinity or as the metric."""
        asked = (self.kernel_params or {}).get("metric") if self.neighborhoods else self.affinity
        kernel = asked if isinstance(asked, Gower) else Gower()
        return kernel.completed(None, columns)

    @property
    def takes_gaps(self) -> bool:
        """Whether NaN is a missing value that the kernel leaves out, and columns may be categories."""
        if self.neighborhoods:
            return self.metric == "gower"
        kind = KERNELS.get(self.affinity) if isinstance(self.affinity, str) else self.affinity
        return bool(getattr(kind, "takes_gaps", False))

    @property
    def euclidean(self) -> bool:
        """Whether Euclidean distances between rows have a meaning."""
        if self.neighborhoods:
            return self.metric == "euclidean"
        return not self.takes_gaps

    @property
    def by_angle(self) -> bool:
        """Whether the lengths of rows do not matter."""
        return (self.metric if self.neighborhoods else self.affinity) == "cosine"


@dataclass(frozen=True)
class Settings:
    """Everything that an estimator was asked for."""

    n_columns: int
    """Of the embedding, the trivial one among them."""
    kernel: KernelSettings = field(default_factory=KernelSettings)
    order: Auto = "auto"
    modelling: str = "biclique"
    gram: str = "auto"
    rank: int | str = "auto"
    n_neighbors: int | None = None
    precision: str = "auto"
    device: str | None = None
    eigen_solver: str | None = None
    eigen_tol: Auto = "auto"
    n_clusters: int | None = None
    """None if only an embedding is wanted."""
    assign_labels: str = "kmeans"
    n_init: int | str = "auto"
    row_normalize: bool | str = "auto"
    random_state: RandomState = None
    n_jobs: int | None = None

    @classmethod
    def of(cls, parameters: Mapping[str, object], *, n_columns: int | None = None) -> Settings:
        """From parameters that passed ``check_parameters``; what an estimator does not have takes its default.

        Without ``n_columns`` there are as many as ``n_components`` says, or as there are clusters. A number of clusters
        that is to be selected is 1 until it is known.
        """
        asked: dict[str, Any] = dict(parameters)
        counting = asked.get("n_clusters") == SELECT
        if counting:
            asked["n_clusters"] = 1
        if asked.get("device") is not None:
            asked["device"] = str(asked["device"])
        kernel = KernelSettings(
            **{part.name: asked[part.name] for part in fields(KernelSettings) if part.name in asked}
        )
        own = {part.name for part in fields(cls)} - {"n_columns", "kernel"}
        columns = int(n_columns or asked.get("n_components") or asked["n_clusters"])
        settings = cls(columns, kernel, **{name: value for name, value in asked.items() if name in own})
        if counting and not (kernel.euclidean or kernel.by_angle):
            raise ParameterError(
                f"n_clusters='select' judges by Euclidean neighbours, which mean nothing for {kernel.measure}: give a "
                "number."
            )
        for wrong in _conflicts(settings):
            raise ParameterError(wrong)
        return settings

    def seeded(self) -> Settings:
        """The same with a number as its seed: all draws of a fit come from it."""
        return replace(self, random_state=fixed_seed(self.random_state))

    @property
    def symmetric(self) -> bool:
        """Whether all pairs of m points make an edge, rather than pairs across two halves."""
        return self.modelling == "symmetric"

    def orders_for(self, n: int) -> tuple[float, ...]:
        """The order asked for, or those that "auto" tries in turn for n distinct rows.

        Order 2 alone for neighbourhoods, graphs and given matrices, and if there is nothing to tell apart.
        """
        if not isinstance(self.order, str):
            return (check_order(self.order),)
        if not self.kernel.of_rows or not 1 < self.n_groups < n:
            return ORDERS[:1]
        return SYMMETRIC_ORDERS if self.symmetric else ORDERS

    @property
    def factored(self) -> bool:
        """Whether K ≈ ΦΦᵀ was asked for."""
        return self.gram != "auto" and self.gram in FACTORED

    @property
    def needs_cut(self) -> bool:
        """Whether labels need passes over K after the embedding."""
        return self.n_clusters is not None and ASSIGNERS[self.assign_labels].needs_cut

    @property
    def pointwise(self) -> bool:
        """Whether all that is asked for comes from sums over rows, in three passes."""
        return not self.symmetric and not self.needs_cut

    @property
    def scales_rows(self) -> bool:
        """Whether rows are scaled to length 1 before labels: "auto" is True for neighbourhoods and graphs.

        Kernels and given matrices are the paper's Algorithm 1, which does not scale.
        """
        if not isinstance(self.row_normalize, str):
            return bool(self.row_normalize)
        scaled = self.kernel.neighborhoods or self.kernel.neighbors
        return scaled and ASSIGNERS[self.assign_labels].scales_rows

    @property
    def n_groups(self) -> int:
        """Clusters by which the order is chosen: for an embedding, as many as it has columns."""
        return self.n_clusters or self.n_columns

    def tolerance(self, auto: float) -> float:
        """The tolerance of eigenpairs that was asked for, or what "auto" is."""
        return auto if isinstance(self.eigen_tol, str) else float(self.eigen_tol)

    @property
    def why_fewer(self) -> str:
        """What is to blame if there are fewer clusters than were asked for."""
        if ASSIGNERS[self.assign_labels].spans_columns and self.n_columns < self.n_groups:
            return f"assign_labels={self.assign_labels!r} gives at most n_components={self.n_columns}"
        return f"the embedding has no more groups for assign_labels={self.assign_labels!r}"


# One table of constraints: a parameter that is not in it is not checked.

Check = Callable[[str, object], object]


def check_parameters(parameters: Mapping[str, object], table: Mapping[str, Check]) -> None:
    """Refuse the first parameter, in the table's order, that is not what it must be."""
    for name, check in table.items():
        if name in parameters:
            check(name, parameters[name])


def or_word(word: str | None, check: Check) -> Check:
    """What a check takes, or a word such as "auto", or None."""
    return lambda name, value: None if isinstance(value, (str, NoneType)) and value == word else check(name, value)


def a_selected_count(name: str, value: object) -> None:
    """A number of clusters, or the word for a search of it."""
    if isinstance(value, str) and value != SELECT:
        raise ParameterError(
            f"{name} must be a whole number of at least 1, got {value!r}: {SELECT!r} chooses it from the data."
        )
    if value != SELECT:
        check_count(name, value)


def an_affinity(name: str, value: object) -> None:
    """The name of a kernel or of a graph, a kernel, or a function of two rows."""
    if isinstance(value, str):
        check_choice(name, value, (NEIGHBORHOODS, *KERNEL_NAMES, "precomputed", *NEIGHBOR_AFFINITIES))
        return
    what = "the name of a kernel, 'precomputed', a function of two rows or a biclique.kernels.Kernel"
    require(isinstance(value, Kernel) or callable(value), name, what, value)


def a_bandwidth(name: str, value: object) -> None:
    """γ: a positive number or the name of a rule."""
    if isinstance(value, str):
        check_choice(name, value, GAMMA_RULES)
    elif not is_number(value) or value < 0:
        raise ParameterError(
            f"gamma must be a number of at least 0 or one of {', '.join(map(repr, GAMMA_RULES))}, got {value!r}: "
            "'auto' chooses it from the data."
        )


def an_order(name: str, value: object) -> None:
    """An order of hypergraphs."""
    require(not isinstance(value, str), name, "a number from 2 to infinity", value)
    check_order(cast("float", value))


def a_tolerance(name: str, value: object) -> None:
    """The tolerance of eigenpairs."""
    require(is_number(value) and 0 <= value < 1, name, "'auto' or a number from 0 to 1", value)


def a_rank(name: str, value: object) -> None:
    """The number of landmarks or features."""
    count = isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0
    require(count, name, "'auto', 'all' or a whole number of at least 1", value)


def a_device(name: str, value: object) -> None:
    """What can be a device; whether it is there only torch can tell."""
    named = isinstance(value, str) and re.fullmatch(rf"({'|'.join(DEVICES)})(:\d+)?", value)
    kind: Any = getattr(sys.modules.get("torch"), "device", ())
    opened = isinstance(value, kind) and value.type != "meta"
    devices = ", ".join(map(repr, DEVICES))
    what = f"None, {devices}, one of several by its number ('cuda:1') or a torch.device that holds numbers"
    require(bool(value is None or named or opened), name, what, value)


CONSTRAINTS: dict[str, Check] = {
    "affinity": an_affinity,
    "order": or_word("auto", lambda _, value: check_order(cast("float", value))),
    "gamma": a_bandwidth,
    "degree": partial(check_number, least=0),
    "coef0": check_number,
    "gram": partial(check_choice, allowed=GRAM_NAMES),
    "rank": or_word("auto", or_word("all", a_rank)),
    "precision": partial(check_choice, allowed=PRECISIONS),
    "n_jobs": lambda _, value: check_jobs(value),
    "eigen_tol": or_word("auto", a_tolerance),
    "n_neighbors": or_word(None, check_count),
    "modelling": partial(check_choice, allowed=MODELLINGS),
    "row_normalize": or_word("auto", check_flag),
    "eigen_solver": or_word(None, partial(check_choice, allowed=EIGEN_SOLVERS)),
    "device": a_device,
    "n_clusters": check_count,
    "n_init": or_word("auto", partial(check_count, most=MOST_STARTS)),
    "assign_labels": partial(check_choice, allowed=ASSIGNERS),
    "n_components": or_word(None, check_count),
    "max_iter": check_count,
    "random_state": lambda _, value: check_random(value),
}
"""Every parameter of every estimator; an estimator that takes less has a table with entries of its own."""


COUNTING: dict[str, Check] = {**CONSTRAINTS, "n_clusters": a_selected_count}
"""The same for what has a search for the number of clusters too."""


def _conflicts(settings: Settings) -> Iterator[str]:
    """What is wrong with parameters that must not be together, one message each."""
    kernel, gram, order = settings.kernel, settings.gram, settings.order
    if settings.symmetric and not isinstance(order, str) and check_order(order) % 1 != 0:
        yield f"modelling='symmetric' needs a whole order, odd or even, got {order!r}."
    if settings.symmetric and (kernel.neighbors or kernel.neighborhoods):
        yield f"modelling='symmetric' works with kernels, not with affinity={kernel.affinity!r}: use affinity='rbf'."
    if settings.factored and (kernel.given or kernel.neighbors):
        yield f"gram={gram!r} needs rows and a kernel, not affinity={kernel.affinity!r}: leave gram at 'auto'."
    if settings.rank == "all" and not kernel.neighborhoods:
        yield "rank='all' is for affinity='neighborhoods': a kernel with all rows is gram='dense' or 'tiled'."
    if kernel.neighborhoods:
        if kernel.metric not in METRICS:
            allowed = ", ".join(map(repr, METRICS))
            yield f"kernel_params: the metric of affinity='neighborhoods' is one of {allowed}, got {kernel.metric!r}."
        for other in sorted(set(kernel.kernel_params or {}) - {"metric"}):
            yield f"kernel_params: affinity='neighborhoods' takes 'metric' alone, got {other!r}."
        for name, value in (("gamma", kernel.gamma), ("gram", gram)):
            if value != "auto":
                yield f"{name}={value!r} is for kernels: leave it at 'auto', or use affinity='rbf'."
