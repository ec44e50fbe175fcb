"""The state of a TablePreparer: named arrays and plain values, and a preparer made from them again.

A state is a dictionary of texts, numbers, lists of these and arrays, with its ``"class"``, as states of models are. The
parts of scikit-learn are fitted anew, to one row that holds what they had learned: no private attribute is stored.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

from biclique._typing import FloatArray
from biclique.exceptions import DataError
from biclique.io.fields import text_array

Preparer = TypeVar("Preparer", bound=BaseEstimator)

CLASS = "TablePreparer"
SCALERS = {"standard": StandardScaler, "robust": RobustScaler}
OFFSETS = {"standard": "mean_", "robust": "center_"}
PARAMETERS = ("columns", "drop", "categorical", "missing", "dates", "scale", "encode")
LISTS = ("names", "number_columns", "category_columns", "kinds", "levels", "indicated")


def one_hot(levels: Any) -> OneHotEncoder:
    """A column for each level; a level that is not among them is 0 in all."""
    return OneHotEncoder(categories=levels, handle_unknown="ignore", sparse_output=False)


def state_of(preparer: Any) -> dict[str, Any]:
    """The state of a fitted preparer."""
    used = [*preparer.number_columns_, *preparer.category_columns_]
    scaler, imputer, fills = preparer.scaler_, preparer.imputer_, preparer.level_imputer_
    return {
        "class": CLASS,
        **{name: _plain(getattr(preparer, name)) for name in PARAMETERS},
        "names": list(preparer.names_),
        "has_names": hasattr(preparer, "feature_names_in_"),
        "number_columns": list(preparer.number_columns_),
        "category_columns": list(preparer.category_columns_),
        "kinds": [preparer.kinds_[name] for name in used],
        "levels": [list(preparer.levels_[name]) for name in preparer.category_columns_],
        "indicated": list(preparer.indicated_),
        "fill": None if imputer is None else imputer.statistics_,
        "offset": None if scaler is None else getattr(scaler, OFFSETS[preparer.scale]),
        "divisor": None if scaler is None else scaler.scale_,
        "most_frequent": None if fills is None else fills.statistics_.tolist(),
    }


def state_of_scale(
    names: list[str], scale: str, offset: FloatArray | None, divisor: FloatArray | None
) -> dict[str, Any]:
    """The state of a preparer of number columns alone, whose scale is known."""
    return {
        "class": CLASS,
        "columns": names,
        "drop": [],
        "categorical": [],
        "missing": "refuse",
        "dates": "refuse",
        "scale": scale,
        "encode": "one-hot",
        "names": names,
        "has_names": False,
        "number_columns": names,
        "category_columns": [],
        "kinds": ["number"] * len(names),
        "levels": [],
        "indicated": [],
        "fill": None,
        "offset": offset,
        "divisor": divisor,
        "most_frequent": None,
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return [name if isinstance(name, str) else int(name) for name in value]


def restored(preparer: Preparer, state: dict[str, Any]) -> Preparer:
    """An empty preparer, filled with a state."""
    _check(state)
    numbers, categories = state["number_columns"], state["category_columns"]
    made: Any = preparer.set_params(**{name: state[name] for name in PARAMETERS})
    made.names_, made.n_features_in_ = list(state["names"]), len(state["names"])
    if state["has_names"]:
        made.feature_names_in_ = np.asarray(state["names"], dtype=object)
    made.number_columns_, made.category_columns_ = list(numbers), list(categories)
    made.kinds_ = dict(zip([*numbers, *categories], state["kinds"], strict=True))
    made.levels_ = dict(zip(categories, map(list, state["levels"]), strict=True))
    made.indicated_ = list(state["indicated"])
    made.imputer_ = made.scaler_ = made.encoder_ = made.level_imputer_ = None
    if state["fill"] is not None:
        strategy = "median" if state["missing"] == "median" else "mean"
        made.imputer_ = SimpleImputer(strategy=strategy).fit(state["fill"][None, :])
    if state["divisor"] is not None:
        made.scaler_ = _scaler(state["scale"], state["offset"], state["divisor"])
    if categories and state["encode"] == "one-hot":
        levels = [text_array(some) for some in state["levels"]]
        made.encoder_ = one_hot(levels).fit(text_array([some[0] for some in levels])[None, :])
    if state["most_frequent"] is not None:
        fills = SimpleImputer(strategy="most_frequent", missing_values=None)
        made.level_imputer_ = fills.fit(text_array(state["most_frequent"])[None, :])
    return preparer


def _scaler(name: str, offset: FloatArray, divisor: FloatArray) -> Any:
    scaler = SCALERS[name](copy=False).fit(np.array(offset[None, :]))
    setattr(scaler, OFFSETS[name], np.array(offset, dtype=float))
    scaler.scale_ = np.array(divisor, dtype=float)
    if name == "standard":
        scaler.var_ = scaler.scale_**2
    return scaler


def _check(state: dict[str, Any]) -> None:
    """Refuse what ``state_of`` cannot have made."""
    if not isinstance(state, dict) or state.get("class") != CLASS:
        raise DataError("this is not the state of a TablePreparer: it names another class.")
    arrays = ("fill", "offset", "divisor")
    absent = {*PARAMETERS, *LISTS, *arrays, "has_names", "most_frequent"} - state.keys()
    if absent:
        raise DataError(
            f"a state of a TablePreparer lacks {', '.join(sorted(absent))}: it is damaged, or of another version."
        )
    numbers, categories = state["number_columns"], state["category_columns"]
    n_scaled = sum(kind != "boolean" for kind in state["kinds"][: len(numbers)])
    lengths = [
        all(isinstance(state[name], list) for name in LISTS),
        len(state["kinds"]) == len(numbers) + len(categories),
        len(state["levels"]) == len(categories) and all(len(levels) > 0 for levels in state["levels"]),
        {*numbers, *categories, *state["indicated"]} <= {*state["names"]},
        all(
            state[name] is None or np.shape(state[name]) == (n,)
            for name, n in zip(arrays, (len(numbers), n_scaled, n_scaled), strict=True)
        ),
        (state["divisor"] is None) == (state["offset"] is None),
        state["divisor"] is None or state["scale"] in SCALERS,
        state["most_frequent"] is None or len(state["most_frequent"]) == len(categories),
    ]
    if not all(lengths):
        raise DataError("a state of a TablePreparer does not fit together: it is damaged, or of another version.")
