"""The state of a fitted model: named arrays and plain values, and the model that is made of them again.

A state is a nested dictionary. Its leaves are arrays of numbers, numbers, text, True, False and None, or lists of
these. Whatever else a model consists of is a dictionary with its ``"class"``, a name in ``PLAIN`` or ``known_classes``,
and its fields by name. A state is data: nothing else is ever made of one, and it names no code to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import PolynomialCountSketch

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.features.maps import FEATURE_MAPS
from biclique.features.neighborhoods import NeighborhoodMap
from biclique.fit.exact_fitted import ExactFitted
from biclique.fit.hypergraphs import HypergraphFitted
from biclique.fit.low_rank import ApproximationError, FactoredSpectrum
from biclique.fit.plan import Fitted, Plan
from biclique.fit.settings import (
    AssigningSettings,
    CutSettings,
    HoldingSettings,
    KernelSettings,
    Settings,
    SolvingSettings,
)
from biclique.fit.three_passes import FactoredFitted
from biclique.gram import FactoredRows, FourierRows, NeighborGram, ProductError
from biclique.hypergraph import ExpansionGram, Hypergraph
from biclique.kernels import KERNELS, Columns, DirectRBF, HeldRows, Kernel
from biclique.multiway.symmetric import SymmetricRows, SymmetricShift
from biclique.neighbors.index import NeighborIndex
from biclique.spectral.cut import Extension
from biclique.spectral.lloyd import KernelRule
from biclique.spectral.rounding import LargestCoordinate, NearestCentre, Seen

Value: TypeAlias = "bool | int | float | str | np.ndarray[Any, Any] | list[Value] | dict[str, Value] | None"
State: TypeAlias = dict[str, Value]

FITTED = (ExactFitted, FactoredFitted, HypergraphFitted)

CLASSES: tuple[type, ...] = (
    *FITTED,
    *(Plan, Settings, KernelSettings, CutSettings, HoldingSettings, SolvingSettings, AssigningSettings),
    *(Extension, FactoredSpectrum, NeighborhoodMap, NearestCentre, LargestCoordinate, KernelRule, ApproximationError),
    *(
        HeldRows,
        FactoredRows,
        FourierRows,
        ProductError,
        SymmetricRows,
        SymmetricShift,
        NeighborGram,
        NeighborIndex,
        ExpansionGram,
    ),
    *(DirectRBF, Columns, PolynomialCountSketch, Seen),
)
"""What a model may consist of, besides kernels and feature maps; what these hold is what ``__getstate__`` gives."""


def known_classes() -> dict[str, type]:
    """The classes that a state may name; a kernel or a feature map that is in its table is among them."""
    return {kind.__name__: kind for kind in (*CLASSES, *KERNELS.values(), *FEATURE_MAPS.values())}


class Held(Protocol):
    """Whatever a fitted model holds."""


@dataclass(frozen=True)
class Plain:
    """How a value of a class that is not ours is taken apart into fields, and made from them again."""

    kind: type
    fields: Callable[..., Mapping[str, Held]]
    make: Callable[..., Held]


def _compressed(matrix: sparse.csr_array) -> Mapping[str, Held]:
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": list(matrix.shape)}


def _sparse_rows(data: FloatArray, indices: IntArray, indptr: IntArray, shape: list[int]) -> sparse.csr_array:
    matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)  # SciPy follows indices wherever they point
    return matrix


def _random_state(state: dict[str, Any]) -> np.random.RandomState:
    random = np.random.RandomState()
    random.set_state(state)
    return random


PLAIN: dict[str, Plain] = {
    "number": Plain(np.generic, lambda x: {"value": np.asarray(x)}, lambda value: value[()]),  # has a precision
    "dtype": Plain(np.dtype, lambda x: {"name": x.name}, lambda name: np.dtype(name)),
    "tuple": Plain(tuple, lambda x: {"items": list(x)}, lambda items: tuple(items)),
    "dictionary": Plain(
        dict,
        lambda x: {"keys": list(x), "values": list(x.values())},
        lambda keys, values: dict(zip(keys, values, strict=True)),
    ),
    "csr_array": Plain(sparse.csr_array, _compressed, _sparse_rows),
    "csr_matrix": Plain(sparse.csr_matrix, _compressed, lambda **x: sparse.csr_matrix(_sparse_rows(**x))),
    "RandomState": Plain(np.random.RandomState, lambda x: {"state": x.get_state(legacy=False)}, _random_state),
    # Names of vertices are the estimator's.
    "Hypergraph": Plain(Hypergraph, lambda x: {"members": x.members, "weights": x.weights}, Hypergraph),
}


def state_of(fitted: Fitted) -> State:
    """The state of a fitted model; of one on a device, that of its copy on the host. Arrays are not copied."""
    return {"class": type(fitted).__name__, **_fields(fitted, "", {})}


def fitted_from(state: State) -> Fitted:
    """The fitted model of a state."""
    if state.get("class") not in [kind.__name__ for kind in FITTED]:
        kinds = ", ".join(kind.__name__ for kind in FITTED)
        raise DataError(f"the state of a fitted model has one of these classes: {kinds}, got {state.get('class')!r}.")
    fitted: Fitted = made(state, {})
    return fitted


More: TypeAlias = Mapping[str, Plain]
"""What a state may hold besides, by the name of its class; for callers above this folder."""


def _fields(value: Held, name: str, more: More) -> State:
    """What an instance of a known class holds."""
    if known_classes().get(type(value).__name__) is type(value):
        held = value.__getstate__() or {}
        if isinstance(held, dict):
            return {field: packed(x, f"{name}.{field}".lstrip("."), more) for field, x in held.items()}
    if isinstance(value, Kernel) or callable(value):
        raise ParameterError(
            f"affinity={getattr(value, '__name__', type(value).__name__)} is code of your own, and the state of a "
            "model holds data: add a Kernel subclass to biclique.kernels.KERNELS and fit with its name, or fit the "
            "matrix of similarities with affinity='precomputed'."
        )
    raise ParameterError(
        f"{name or 'the model'} is a {type(value).__name__}, which the state of a model cannot hold: it holds numbers, "
        "text, arrays of numbers and what biclique itself fits; keep such a model with pickle."
    )


def packed(value: Held, name: str, more: More) -> Value:
    """A value as a part of a state; ``name`` is its place, for errors."""
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value
    if isinstance(value, list):
        return [packed(x, f"{name}[{i}]", more) for i, x in enumerate(value)]
    for kinds, exact in ((more, True), (PLAIN, False)):
        for kind, plain in kinds.items():
            if type(value) is plain.kind if exact else isinstance(value, plain.kind):
                fields = plain.fields(value).items()
                return {"class": kind, **{field: packed(x, f"{name}.{field}".lstrip("."), more) for field, x in fields}}
    return {"class": type(value).__name__, **_fields(value, name, more)}


def made(value: Value, more: More) -> Any:
    """What a part of a state stands for."""
    if isinstance(value, list):
        return [made(x, more) for x in value]
    if not isinstance(value, dict):
        return value
    fields = {name: made(x, more) for name, x in value.items() if name != "class"}
    kind, known = value.get("class"), known_classes()
    if isinstance(kind, str) and (kind in more or kind in PLAIN):
        return (more if kind in more else PLAIN)[kind].make(**fields)
    if not isinstance(kind, str) or kind not in known:
        raise DataError(
            f"a state names the class {kind!r}, which is not one of biclique's: it is not the state of a model, or it "
            "is of another version, or its kernel is not in biclique.kernels.KERNELS now."
        )
    expected = [field.name for field in fields_of(known[kind])] if is_dataclass(known[kind]) else []
    missing = sorted(set(expected) - set(fields))
    if missing:
        raise DataError(f"a state has a {kind} without {missing[0]!r}: it is one of another version.")
    one: Any = object.__new__(known[kind])
    one.__dict__.update(fields)
    return one
