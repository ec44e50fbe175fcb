"""What can be saved: our estimators, scikit-learn's scalers, pipelines of both. Anything else is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from biclique.cluster import (
    BicliqueKernelKMeans,
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    ConsensusClustering,
    HypergraphSpectralClustering,
    InhomogeneousSubspaceClustering,
)
from biclique.exceptions import DataError, ParameterError
from biclique.fit.state import FITTED, Plain, State, made, packed
from biclique.hypergraph import AffineSubspace
from biclique.io import TablePreparer
from biclique.io.fields import text_array
from biclique.runtime.namespace import is_dask
from biclique.selection.count_result import Counted, CountResult
from biclique.selection.structure import Structure

OURS: tuple[type[BaseEstimator], ...] = (
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    BicliqueKernelKMeans,
    HypergraphSpectralClustering,
    InhomogeneousSubspaceClustering,
)
SCALERS: tuple[type[BaseEstimator], ...] = (
    *(StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler),
    *(Normalizer, QuantileTransformer, PowerTransformer),
)
FOUND: tuple[type, ...] = (CountResult, Counted, Structure, AffineSubspace)
"""Results that estimators of ours keep: frozen dataclasses."""

HEAVY = ("labels_", "embedding_")
"""One value or row for every training row: left out unless asked for."""

WITH_STATE: dict[str, type[TablePreparer]] = {"TablePreparer": TablePreparer}
"""Classes that have ``to_state()``, a dictionary of plain values and arrays, and ``from_state(state)``."""


def _classes(include: Sequence[str]) -> dict[str, Plain]:
    """How every class is taken apart, and made again."""
    ours = {kind.__name__: Plain(kind, lambda model: _ours(model, include), _maker(kind)) for kind in OURS}
    # New rows vote by the labels of the training rows, so here they stay.
    ours["ConsensusClustering"] = Plain(ConsensusClustering, vars, _maker(ConsensusClustering))
    of_sklearn = {
        kind.__name__: Plain(
            kind, lambda x: {name: value for name, value in vars(x).items() if name not in HEAVY}, _maker(kind)
        )
        for kind in (*SCALERS, KMeans)
    }
    with_state = {
        name: Plain(kind, lambda x: {"state": x.to_state()}, kind.from_state) for name, kind in WITH_STATE.items()
    }
    return {
        **ours,
        **of_sklearn,
        **with_state,
        **{
            kind.__name__: Plain(kind, lambda x: {one.name: getattr(x, one.name) for one in fields_of(x)}, kind)
            for kind in FOUND
        },
        "Pipeline": Plain(Pipeline, lambda x: {"steps": list(x.steps), "verbose": x.verbose}, _pipeline),
        # Names of columns and vertices: an array of Python's objects, as a list.
        "names": Plain(
            np.ndarray,
            lambda x: {"items": x.ravel().tolist(), "shape": list(x.shape)},
            lambda items, shape: text_array(items).reshape(shape),
        ),
    }


def model_state(model: BaseEstimator, include: Sequence[str]) -> State:
    """The state of an estimator or a pipeline."""
    _check(model)
    known = _classes(include)
    absent = [name for name in include if not any(hasattr(one, name) for one in _inside(model))]
    if absent:
        raise ParameterError(f"include has {absent[0]!r}, which this {type(model).__name__} does not have.")
    state = packed(model, "", known)
    return state if isinstance(state, dict) else {}


def model_from(state: State) -> Any:
    """The estimator of a state."""
    known = _classes(())
    names = {kind.__name__ for kind in _savable()}
    if state.get("class") not in names:
        raise DataError(f"a model is one of {', '.join(sorted(names))}, got {state.get('class')!r}.")
    return made(state, known)


def _savable() -> list[type]:
    return [*OURS, ConsensusClustering, *SCALERS, *WITH_STATE.values(), Pipeline]


def _check(model: object) -> None:
    """Refuse what cannot be saved, by its name, and what was not fitted."""
    for one in _inside(model):
        kind = type(one)
        if kind not in _savable():
            names = ", ".join(known.__name__ for known in _savable())
            raise ParameterError(
                f"a {kind.__name__} cannot be saved: a model file holds {names}, and pipelines of these; keep others "
                "with pickle, joblib or skops."
            )
        if isinstance(one, Pipeline):
            if one.memory is not None:
                raise ParameterError("a Pipeline with memory= cannot be saved, since that is a place: set memory=None.")
            continue
        try:
            check_is_fitted(one)
        except NotFittedError as error:
            raise ParameterError(
                f"this {kind.__name__} is not fitted, so there is nothing to save: call fit first."
            ) from error


def _inside(model: object) -> Iterator[Any]:
    """A model and, of a pipeline, its steps."""
    yield model
    if isinstance(model, Pipeline):
        for _, step in model.steps:
            if step is not None and step != "passthrough":
                yield from _inside(step)


# Taken apart


def _ours(model: BaseEstimator, include: Sequence[str]) -> dict[str, Any]:
    """Parameters and attributes, without what is large and not needed by ``predict``."""
    lazy = [name for name in include if is_dask(vars(model).get(name))]
    if lazy:
        raise ParameterError(
            f"include names {', '.join(map(repr, lazy))}, lazy in a model that was fitted on a Dask collection: leave "
            "include out, and write such arrays by themselves, such as model.labels_.to_zarr(path)."
        )
    fields = {name: x for name, x in vars(model).items() if name not in HEAVY or name in include}
    left_out = sorted(
        {*vars(model).get("_left_out", ()), *(name for name in HEAVY if name in vars(model))} - set(fields)
    )
    if left_out:
        fields["_left_out"] = left_out
    if "labels_" in left_out and "labels_" in vars(model) and "_lazy_sizes" not in fields:
        fields["_n_labels"] = int(np.max(vars(model)["labels_"], initial=-1)) + 1
    if fields.get("device") is not None:
        fields["device"] = str(fields["device"])
    if "_fitted" in fields and fields.get("plan_") is fields["_fitted"].plan:
        del fields["plan_"]  # one plan, in one place
    return fields


# Made again


def _maker(kind: type[BaseEstimator]) -> Callable[..., BaseEstimator]:
    def make(**fields: Any) -> BaseEstimator:
        parameters = set(kind._get_param_names())
        model = kind(**{name: x for name, x in fields.items() if name in parameters})
        for name, value in fields.items():
            if name in parameters:
                continue
            # A field never hides a method, and is never a setting that this version does not know.
            if not name.isidentifier() or name.startswith("__") or hasattr(kind, name) or name.strip("_") == name:
                raise DataError(f"a {kind.__name__} of this version has no {name!r}: it is one of another version.")
            setattr(model, name, value)
        if "_fitted" in fields:
            if not isinstance(fields["_fitted"], FITTED):
                raise DataError(f"what a {kind.__name__} has found is missing.")
            vars(model).setdefault("plan_", fields["_fitted"].plan)
        return model

    return make


def _pipeline(steps: list[tuple[str, Any]], verbose: bool) -> Pipeline:
    """Of models alone, and never with ``memory``: what is cached there is unpickled."""
    for name, step in steps:
        if type(step) not in _savable() and step not in (None, "passthrough"):
            raise DataError(f"step {name!r} of a Pipeline is a {type(step).__name__}, which is not a model.")
    return Pipeline(steps, verbose=bool(verbose))


def what_predict_needs(model: object) -> Mapping[str, Any]:
    """The fitted part of each of our estimators inside, by the name of its class."""
    return {type(one).__name__: vars(one)["plan_"] for one in _inside(model) if "plan_" in vars(one)}
