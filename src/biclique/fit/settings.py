"""Settings: the parameters of an estimator, typed, and checked once by one table of constraints.

Nothing below the estimators' own files sees an estimator: it sees these.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from biclique._typing import Device, RandomState
from biclique.exceptions import ParameterError
from biclique.features.maps import FEATURE_MAPS
from biclique.features.neighborhoods import METRICS
from biclique.gram import GRAMS
from biclique.kernels import GAMMA_RULES, KERNEL_NAMES, KERNELS, Columns, Gower, Kernel, make_kernel
from biclique.kernels.gower import Categorical, check_categorical
from biclique.runtime import (
    MOST_STARTS,
    Names,
    check_choice,
    check_count,
    check_flag,
    check_jobs,
    check_number,
    check_random,
    is_finite,
    parse_memory_limit,
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
    categorical_features: Categorical | None = None
    columns: Columns | None = None
    """What is known of the columns of X, for a kernel that takes categories; None before X was seen."""

    @property
    def given(self) -> bool:
        """Whether X is a matrix of similarities or distances."""
        return isinstance(self.affinity, str) and self.affinity in PRECOMPUTED

    @property
    def neighbors(self) -> bool:
        """Whether K is a neighbour graph."""
        return isinstance(self.affinity, str) and self.affinity in NEIGHBOR_AFFINITIES

    @property
    def neighborhoods(self) -> bool:
        """Whether K is that of the hypergraph of neighbourhoods."""
        return isinstance(self.affinity, str) and self.affinity == NEIGHBORHOODS

    @property
    def metric(self) -> str:
        """How neighbourhoods measure distances."""
        asked = (self.kernel_params or {}).get("metric", METRICS[0])
        return asked.name if isinstance(asked, Gower) else str(asked)

    @property
    def measure(self) -> str:
        """The parameter that says how rows are compared, for messages."""
        return f"the metric {self.metric!r}" if self.neighborhoods else f"affinity={self.affinity!r}"

    @property
    def gower(self) -> Gower:
        """The Gower kernel that was asked for, as the affinity or as the metric."""
        asked = (self.kernel_params or {}).get("metric") if self.neighborhoods else self.affinity
        found = asked if isinstance(asked, Gower) else Gower(self.categorical_features)
        return found if self.columns is None else found.of_columns(self.columns)

    @property
    def of_rows(self) -> bool:
        """Whether K is a kernel of rows."""
        return not (self.given or self.neighbors or self.neighborhoods)

    def kernel(self, gamma: float | None = None) -> Kernel:
        """The kernel, with a γ or, to ask what it can do, without."""
        if self.neighborhoods:
            return self.gower
        kernel = make_kernel(
            self.affinity, gamma=gamma, degree=self.degree, coef0=self.coef0, kernel_params=self.kernel_params
        )
        return kernel if self.columns is None else kernel.of_columns(self.columns)

    @property
    def takes_gaps(self) -> bool:
        """Whether NaN is a missing value that the kernel leaves out, and columns may be categories."""
        if self.neighborhoods:
            return self.metric == "gower"
        return self.of_rows and self._kind.takes_gaps

    @property
    def euclidean(self) -> bool:
        """Whether Euclidean distances between rows have a meaning."""
        if self.neighborhoods:
            return self.metric == "euclidean"
        return not self.of_rows or self._kind.euclidean

    @property
    def _kind(self) -> type[Kernel] | Kernel:
        """The class of a kernel with a name, or the kernel itself: its properties are known without γ."""
        return KERNELS[self.affinity] if isinstance(self.affinity, str) else self.kernel()


@dataclass(frozen=True)
class CutSettings:
    """Which cut."""

    order: Auto = "auto"
    modelling: str = "biclique"

    @property
    def auto(self) -> bool:
        """Whether the data choose the order."""
        return isinstance(self.order, str)

    @property
    def symmetric(self) -> bool:
        """Whether all pairs of m points make an edge, rather than pairs across two halves."""
        return self.modelling == "symmetric"

    @property
    def orders(self) -> tuple[float, ...]:
        """The order asked for, or those that "auto" tries in turn."""
        if not isinstance(self.order, str):
            return (check_order(self.order),)
        return SYMMETRIC_ORDERS if self.symmetric else ORDERS


@dataclass(frozen=True)
class HoldingSettings:
    """How K is stored, and where."""

    gram: str = "auto"
    rank: int | str = "auto"
    landmarks: str = "uniform"
    n_neighbors: int | None = None
    precision: str = "auto"
    memory_limit: int | str = "auto"
    device: Device | None = None
    """By its name."""
    max_hours: float = 24.0
    """Of an exact fit on a cluster."""

    def __post_init__(self) -> None:
        if self.device is not None:
            object.__setattr__(self, "device", str(self.device))

    @property
    def factored(self) -> bool:
        """Whether K ≈ ΦΦᵀ was asked for."""
        return self.gram != "auto" and self.gram in FACTORED


@dataclass(frozen=True)
class SolvingSettings:
    """How eigenpairs are found."""

    eigen_solver: str | None = None
    eigen_tol: Auto = "auto"
    max_iter: int = 100

    def tolerance(self, auto: float) -> float:
        """The tolerance asked for, or what "auto" is."""
        return auto if isinstance(self.eigen_tol, str) else float(self.eigen_tol)

    @property
    def by_scipy(self) -> bool:
        """Whether one of SciPy's solvers was asked for."""
        return self.eigen_solver in ("arpack", "lobpcg")


@dataclass(frozen=True)
class AssigningSettings:
    """How labels come from the embedding; without a number of clusters if only an embedding is wanted."""

    n_clusters: int | None = None
    assign_labels: str = "kmeans"
    n_init: int = 10
    row_normalize: bool | str = "auto"

    @property
    def needs_cut(self) -> bool:
        """Whether labels need passes over K after the embedding."""
        return self.n_clusters is not None and ASSIGNERS[self.assign_labels].needs_cut


@dataclass(frozen=True)
class Settings:
    """Everything that an estimator was asked for."""

    n_columns: int
    """Of the embedding, the trivial one among them."""
    kernel: KernelSettings = field(default_factory=KernelSettings)
    cut: CutSettings = field(default_factory=CutSettings)
    holding: HoldingSettings = field(default_factory=HoldingSettings)
    solving: SolvingSettings = field(default_factory=SolvingSettings)
    assigning: AssigningSettings = field(default_factory=AssigningSettings)
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, object], *, n_columns: int | None = None) -> Settings:
        """From parameters that passed ``check_parameters``; what an estimator does not have takes its default.

        Without ``n_columns`` there are as many as ``n_components`` says, or as there are clusters. A number of clusters
        that is to be selected is 1 until it is known.
        """
        counting = parameters.get("n_clusters") == SELECT
        if counting:
            parameters = {**parameters, "n_clusters": 1}

        def given(group: type) -> dict[str, Any]:
            return {name: parameters[name] for name in parameters.keys() & {part.name for part in fields(group)}}

        settings = cls(
            int(cast("int", n_columns or parameters.get("n_components") or parameters["n_clusters"])),
            KernelSettings(**given(KernelSettings)),
            CutSettings(**given(CutSettings)),
            HoldingSettings(**given(HoldingSettings)),
            SolvingSettings(**given(SolvingSettings)),
            AssigningSettings(**given(AssigningSettings)),
            cast("RandomState", parameters.get("random_state")),
            cast("int | None", parameters.get("n_jobs")),
            bool(parameters.get("verbose")),
        )
        _check_categorical(settings)
        if counting and not settings.kernel.euclidean:
            raise ParameterError(
                f"n_clusters='select' judges by Euclidean neighbours, which mean nothing for "
                f"{settings.kernel.measure}: give a number."
            )
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse parameters that must not be together."""
        for wrong in _conflicts(self):
            raise ParameterError(wrong)

    @property
    def scales_rows(self) -> bool:
        """Whether rows are scaled to length 1 before labels: "auto" is True for neighbourhoods and graphs.

        Kernels and given matrices are the paper's Algorithm 1, which does not scale.
        """
        asked = self.assigning.row_normalize
        if not isinstance(asked, str):
            return bool(asked)
        scaled = self.kernel.neighborhoods or self.kernel.neighbors
        return scaled and ASSIGNERS[self.assigning.assign_labels].scales_rows

    @property
    def n_groups(self) -> int:
        """Clusters by which the order is chosen: for an embedding, as many as it has columns."""
        return self.assigning.n_clusters or self.n_columns

    @property
    def why_fewer(self) -> str:
        """What is to blame if there are fewer clusters than were asked for."""
        name = self.assigning.assign_labels
        if ASSIGNERS[name].spans_columns and self.n_columns < self.n_groups:
            return f"assign_labels={name!r} gives at most n_components={self.n_columns}"
        return f"the embedding has no more groups for assign_labels={name!r}"

    @property
    def pointwise(self) -> bool:
        """Whether all that is asked for comes from sums over rows, in three passes."""
        return not self.cut.symmetric and not self.assigning.needs_cut


# One table of constraints: a parameter that is not in it is not checked.

Check = Callable[[str, object], object]


def check_parameters(parameters: Mapping[str, object], table: Mapping[str, Check]) -> None:
    """Refuse the first parameter, in the table's order, that is not what it must be."""
    for name, check in table.items():
        if name in parameters:
            check(name, parameters[name])


def choice(allowed: Callable[[], tuple[str, ...]], *, none: bool = False) -> Check:
    """One of a few words, which are looked up when they are needed: tables can grow."""

    def check(name: str, value: object) -> None:
        if not (none and value is None):
            check_choice(name, value, allowed())

    return check


def count(*, most: int = 2**63 - 1, none: bool = False) -> Check:
    """A whole number of at least 1."""
    return lambda name, value: None if none and value is None else check_count(name, value, most=most)


def number(*, least: float = -np.inf) -> Check:
    """A finite number."""
    return lambda name, value: check_number(name, value, least=least)


def or_auto(check: Check) -> Check:
    """What a check takes, or "auto"."""
    return lambda name, value: None if isinstance(value, str) and value == "auto" else check(name, value)


def or_select(check: Check) -> Check:
    """What a check takes, or "select"."""
    return lambda name, value: None if isinstance(value, str) and value == SELECT else check(name, value)


def an_affinity(name: str, value: object) -> None:
    """The name of a kernel or of a graph, a kernel, or a function of two rows."""
    if isinstance(value, str):
        check_choice(name, value, (NEIGHBORHOODS, *KERNEL_NAMES, "precomputed", *NEIGHBOR_AFFINITIES))
    elif not (isinstance(value, Kernel) or callable(value)):
        raise ParameterError(
            f"affinity must be the name of a kernel, 'precomputed', a function of two rows or a "
            f"biclique.kernels.Kernel, got {value!r}."
        )


def a_bandwidth(name: str, value: object) -> None:
    """γ: a positive number or the name of a rule."""
    if isinstance(value, str):
        check_choice(name, value, GAMMA_RULES)
    elif isinstance(value, bool) or not isinstance(value, Real) or not is_finite(value) or not float(value) > 0:
        raise ParameterError(
            f"gamma must be a positive number or one of {', '.join(map(repr, GAMMA_RULES))}, got {value!r}: "
            "'auto' chooses it from the data."
        )


def an_order(name: str, value: object) -> None:
    """An order of hypergraphs."""
    if isinstance(value, str):
        raise ParameterError(f"{name} must be a number from 2 to infinity, got {value!r}.")
    check_order(cast("float", value))


def a_tolerance(name: str, value: object) -> None:
    """The tolerance of eigenpairs: "auto" or a number from 0."""
    if value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, Real) or not is_finite(value) or not 0 <= float(value) < 1:
        raise ParameterError(f"{name} must be 'auto' or a number from 0 to 1, got {value!r}.")


def a_rank(name: str, value: object) -> None:
    """The number of landmarks or features: "auto", "all" or a whole number."""
    if isinstance(value, str) and value == "all":
        return
    if isinstance(value, (str, bool)) or not isinstance(value, Integral) or int(value) < 1:
        raise ParameterError(f"{name} must be 'auto', 'all' or a whole number of at least 1, got {value!r}.")


def a_device(name: str, value: object) -> None:
    """What can be a device; whether it is there only torch can tell."""
    named = isinstance(value, str) and re.fullmatch(rf"({'|'.join(DEVICES)})(:\d+)?", value)
    kind: Any = getattr(sys.modules.get("torch"), "device", ())
    opened = isinstance(value, kind) and value.type != "meta"
    if not (value is None or named or opened):
        raise ParameterError(
            f"{name} must be None, {', '.join(map(repr, DEVICES))}, one of several by its number ('cuda:1') or a "
            f"torch.device that holds numbers, got {value!r}."
        )


def known_order(_: str, value: object) -> None:
    """An order, or "auto"; the message for text is that of ``check_order``."""
    if not (isinstance(value, str) and value == "auto"):
        check_order(cast("float", value))


CONSTRAINTS: dict[str, Check] = {
    "affinity": an_affinity,
    "order": known_order,
    "gamma": a_bandwidth,
    "categorical_features": check_categorical,
    "degree": number(least=1),
    "coef0": number(),
    "gram": choice(lambda: tuple(GRAM_NAMES)),
    "rank": or_auto(a_rank),
    "landmarks": choice(lambda: ("uniform",)),
    "precision": choice(lambda: PRECISIONS),
    "max_iter": count(),
    "max_hours": number(least=0.0),
    "n_jobs": lambda _, value: check_jobs(value),
    "eigen_tol": a_tolerance,
    "n_neighbors": count(none=True),
    "modelling": choice(lambda: MODELLINGS),
    "row_normalize": or_auto(check_flag),
    "eigen_solver": choice(lambda: EIGEN_SOLVERS, none=True),
    "device": a_device,
    "n_clusters": count(),
    "n_init": count(most=MOST_STARTS),
    "assign_labels": choice(lambda: tuple(ASSIGNERS)),
    "n_components": count(none=True),
    "memory_limit": or_auto(lambda _, value: parse_memory_limit(value)),
    "random_state": lambda _, value: check_random(value),
}
"""Every parameter of every estimator; an estimator that takes less has a table with entries of its own."""


COUNTING: dict[str, Check] = {**CONSTRAINTS, "n_clusters": or_select(CONSTRAINTS["n_clusters"]), "k_max": count()}
"""The same for what has a search for the number of clusters too."""


def _check_categorical(settings: Settings) -> None:
    kernel = settings.kernel
    if kernel.categorical_features is not None and not kernel.takes_gaps:
        names = " or ".join(repr(name) for name, kind in KERNELS.items() if kind.takes_gaps)
        raise ParameterError(
            f"categorical_features works with the metric 'gower' or affinity={names}, not with {kernel.measure}: use "
            "kernel_params={'metric': 'gower'}, or "
            "turn categories into numbers first (sklearn.preprocessing.OneHotEncoder)."
        )


def _conflicts(settings: Settings) -> Iterator[str]:
    """What is wrong with parameters that must not be together, one message each."""
    kernel, cut, gram = settings.kernel, settings.cut, settings.holding.gram
    if settings.holding.factored and not kernel.of_rows and not kernel.neighborhoods:
        yield (
            f"gram={gram!r} needs rows and a kernel, not affinity={kernel.affinity!r}: leave gram at 'auto', or use "
            "affinity='rbf'."
        )
    if not kernel.euclidean and settings.holding.landmarks == "kmeans++":
        yield (
            f"landmarks='kmeans++' measures Euclidean distances, which mean nothing for affinity={kernel.affinity!r}: "
            "use landmarks='uniform' or 'leverage'."
        )
    if cut.symmetric and not cut.auto and check_order(cast("float", cut.order)) % 1 != 0:
        yield f"modelling='symmetric' needs a whole order, odd or even, got {cut.order!r}."
    if kernel.neighbors and cut.symmetric:
        yield (
            f"modelling={cut.modelling!r} works with kernels, not with affinity={kernel.affinity!r}: leave it at "
            "'biclique'."
        )
    if kernel.neighborhoods and cut.symmetric:
        yield "modelling='symmetric' works with kernels, not with affinity='neighborhoods': use affinity='rbf'."
    if kernel.neighborhoods and kernel.metric not in METRICS:
        allowed = ", ".join(map(repr, METRICS))
        yield f"kernel_params: the metric of affinity='neighborhoods' is one of {allowed}, got {kernel.metric!r}."
    if kernel.neighborhoods and set(kernel.kernel_params or {}) - {"metric"}:
        other = sorted(set(kernel.kernel_params or {}) - {"metric"})[0]
        yield f"kernel_params: affinity='neighborhoods' takes 'metric' alone, got {other!r}."
    if kernel.neighborhoods and kernel.gamma != "auto":
        yield f"gamma={kernel.gamma!r} is for kernels: leave it at 'auto', or use affinity='rbf'."
    if kernel.neighborhoods and gram != "auto":
        yield f"gram={gram!r} is for kernels: leave it at 'auto', or use affinity='rbf'."
    if settings.holding.rank == "all" and not kernel.neighborhoods:
        yield "rank='all' is for affinity='neighborhoods': a kernel with all rows is gram='dense' or 'tiled'."
    if settings.solving.eigen_solver == "amg" and kernel.of_rows:
        yield (
            "eigen_solver='amg' is for neighbour graphs (affinity='nearest_neighbors'), where it is the default: use "
            "eigen_solver='auto' here."
        )
