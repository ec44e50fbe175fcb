"""A state as a file would hold it: one JSON text, and arrays by name, without pickle."""

import io
import json

import numpy as np

from biclique.fit.state import fitted_from, state_of


def through_a_file(fitted):
    """The fitted model of what is left of its state in JSON and .npz."""
    arrays = {}

    def text(value, name):
        if isinstance(value, np.ndarray):
            arrays[name] = value
            return {"array": name}
        if isinstance(value, dict):
            return {key: text(x, f"{name}.{key}") for key, x in value.items()}
        if isinstance(value, list):
            return [text(x, f"{name}.{i}") for i, x in enumerate(value)]
        assert value is None or type(value) in (bool, int, float, str), (name, type(value))
        return value

    said, file = json.dumps(text(state_of(fitted), "")), io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        held = {name: stored[name] for name in stored.files}

    def value(said):
        if isinstance(said, dict):
            return held[said["array"]] if "array" in said else {key: value(x) for key, x in said.items()}
        return [value(x) for x in said] if isinstance(said, list) else said

    return fitted_from(value(json.loads(said)))


def same_everywhere(fitted, again, rows):
    """Equal bits, of what was found and of what rows get."""
    assert type(again) is type(fitted)
    assert str(again.plan) == str(fitted.plan)
    assert again.plan.settings.assigning == fitted.plan.settings.assigning
    assert np.array_equal(again.eigenvalues, fitted.eigenvalues)
    assert np.array_equal(again.residuals, fitted.residuals)
    assert (again.n_passes, again.takes_chunks) == (fitted.n_passes, fitted.takes_chunks)
    for X in rows:
        assert np.array_equal(again.embed(X, 1), fitted.embed(X, 1))
        if fitted.plan.settings.assigning.n_clusters is not None:
            assert np.array_equal(again.labels(X, 1), fitted.labels(X, 1))
