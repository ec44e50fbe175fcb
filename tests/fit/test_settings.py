"""Every parameter of every estimator is checked, by one table of constraints, before anything else."""

from dataclasses import fields

import numpy as np
import pytest

from biclique import (
    BicliqueKernelKMeans,
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    HypergraphSpectralClustering,
    InhomogeneousSubspaceClustering,
)
from biclique.exceptions import ParameterError
from biclique.fit.settings import CONSTRAINTS, Settings

ESTIMATORS = [
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    BicliqueKernelKMeans,
    HypergraphSpectralClustering,
    InhomogeneousSubspaceClustering,
]
FREE = {"kernel_params", "verbose"}
"""What is not in a table: passed on to a user's function, and taken as true or false."""
ELSEWHERE = {"expansion"}
"""Of hypergraphs: its own table, ``find_expansion``, refuses it."""

X = np.random.default_rng(0).random((30, 3))
WORDS = [object(), "no such word", 3.5, [], None]
HUGE = 10**400
COUNTS = [object(), "many", 0, -1, 2.5, True, np.nan, None, 10**30, HUGE]
NUMBERS = [object(), "large", np.nan, np.inf, True, None, HUGE]
WRONG = {
    **dict.fromkeys(["affinity", "gram", "precision", "modelling", "assign_labels", "init"], WORDS),
    "eigen_solver": WORDS[:-1],
    **dict.fromkeys(["n_clusters", "n_init", "max_iter"], COUNTS),
    "n_neighbors": [count for count in COUNTS if count is not None],
    **dict.fromkeys(["subspace_dim", "n_draws", "n_rounds", "n_restarts"], COUNTS),
    "n_components": [object(), "all", 0, -2, 1.5, True],
    "rank": [object(), "full", 0, -1, 10.0, True, None],
    "degree": [*NUMBERS, -0.5],
    "coef0": NUMBERS,
    "gamma": [*NUMBERS, 0, -1.0],
    "order": [object(), "high", 1.5, -np.inf, np.nan, True, None],
    "eigen_tol": [object(), "tight", -1e-9, 1.0, HUGE, np.nan, True, None],
    "row_normalize": [object(), "yes", 2, None],
    "n_jobs": [object(), 0, "all", 1.5, True],
    "random_state": [object(), "seed", -1, 2**32, HUGE, 1.5, True, np.random.default_rng(0)],
    "device": [object(), "gpu", "cuda:x", 0, "meta"],
    "weights": ["heavy"],  # others are data, a number a row
    "drop_first": [object(), "no", 1, None],
    "expansion": [object(), "flat", None, 3],
}


def cases():
    for estimator in ESTIMATORS:
        for name in estimator().get_params():
            if name not in FREE:
                yield pytest.param(estimator, name, id=f"{estimator.__name__}-{name}")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_in_the_table(estimator):
    assert set(estimator().get_params()) - set(estimator._constraints) <= FREE | ELSEWHERE
    assert not FREE & set(estimator._constraints)


@pytest.mark.parametrize(("estimator", "name"), list(cases()))
def test_wrong_values_are_refused_by_the_name_of_the_parameter(estimator, name):
    for value in WRONG[name]:
        model = estimator(**{name: value})
        with pytest.raises(ParameterError, match=rf"^{name}\b"):
            model.fit(X)
        assert not hasattr(model, "labels_")


def test_settings_are_what_was_asked_for():
    asked = {"affinity": "rbf", "order": 8, "gamma": 0.3, "gram": "tiled", "eigen_tol": 1e-3, "n_init": 2, "n_jobs": 2}
    model = BicliqueSpectralClustering(5, **asked)
    settings = model._settings()
    assert settings.n_columns == 5
    asked = model.get_params()
    found = {field.name: getattr(part, field.name) for part in (settings, settings.kernel) for field in fields(part)}
    del found["kernel"], found["n_columns"]
    assert found == {name: asked[name] for name in found}
    assert set(asked) - set(found) == {"n_components", "verbose"}
    assert len(asked) <= 22
    assert set(found) - set(CONSTRAINTS) == {"kernel_params"}


def test_what_must_not_be_together():
    for parameters, message in (
        ({"gram": "nystroem", "affinity": "precomputed"}, r"gram='nystroem' needs rows and a kernel"),
        ({"modelling": "symmetric", "order": 2.5}, "modelling='symmetric' needs a whole order"),
        ({"modelling": "symmetric", "order": np.inf}, "modelling='symmetric' needs a whole order"),
        ({"modelling": "symmetric", "affinity": "nearest_neighbors"}, "modelling='symmetric' works with kernels"),
        (
            {"modelling": "symmetric"},
            "modelling='symmetric' works with kernels, not with affinity='neighborhoods': use",
        ),
        ({"gram": "tiled"}, "gram='tiled' is for kernels: leave it at 'auto', or use affinity='rbf'"),
        ({"gram": "nystroem"}, "gram='nystroem' is for kernels: leave it at 'auto', or use affinity='rbf'"),
        ({"kernel_params": {"metric": "taxi"}}, "one of 'euclidean', 'cosine', 'gower', got 'taxi'"),
        ({"kernel_params": {"of": 3}}, "affinity='neighborhoods' takes 'metric' alone, got 'of'"),
        ({"rank": "all", "affinity": "rbf"}, "rank='all' is for affinity='neighborhoods'"),
    ):
        with pytest.raises(ParameterError, match=message):
            Settings.of(BicliqueSpectralClustering(**parameters).get_params(), n_columns=3)
