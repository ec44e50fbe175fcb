"""Of the module constants that default fits read, few can change labels, and those are listed.

Fits of five kinds are traced. What counts is the text of the functions that run: branches that are not taken, and the
defaults of parameters, included.
"""

import ast
import inspect
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

import biclique
from biclique import BicliqueSpectralClustering
from biclique.kernels import Gower
from tests.optional import Optional, needs

pytestmark = [needs("dask"), needs("pandas")]
dask, da, pd = Optional("dask"), Optional("dask.array"), Optional("pandas")

CLUSTERS = "choice about clusters"
LABELS = "numerics that can change labels"

MOST_OF_LABELS, MOST_OF_CLUSTERS = 12, 4

PARAMETERS = {"n_init": (CLUSTERS, "Starts of k-means; the default of a parameter, so no code reads it.")}

OF_LABELS = {
    "features.neighborhoods.NEIGHBORS": (CLUSTERS, "r: landmarks of a row."),
    "features.neighborhoods.LANDMARKS": (CLUSTERS, "The resolution: clusters of a few landmarks are merged."),
    "features.neighborhoods.FLOOR": (CLUSTERS, "The least weight of a hyperedge, for heavy tails."),
    "features.neighborhoods.LANDMARKS_A_CLUSTER": (LABELS, "More landmarks if there are more than 200 clusters."),
    "features.neighborhoods.DRAWN_ROWS": (LABELS, "Rows that centres are means of, and that k-means sees."),
    "features.neighborhoods.LLOYD_STEPS": (LABELS, "Where centres are, if rows are more than landmarks."),
    "features.neighborhoods.TIE": (LABELS, "Distances that count as equal."),
    "features.neighborhoods.MOST_TIED": (LABELS, "How many equally near landmarks a row may have."),
    "fit.neighborhood_cut.TOLERANCE": (LABELS, "How accurate eigenpairs are."),
    "spectral.rounding.SAMPLE_ROWS": (LABELS, "Of more drawn rows, so many make the centres of k-means."),
    "spectral.rounding.TIE": (LABELS, "By how much another start of k-means must be better than the first."),
}
"""All others are for speed, memory, refusals, warnings and messages, and for the rounding of what is equal in truth."""

# Five kinds of fits


def labels_of(X, **parameters):
    return np.asarray(BicliqueSpectralClustering(3, random_state=0, **parameters).fit(X).labels_)


def rows(n, d):
    return make_blobs(n, d, centers=4 * np.eye(3, d), random_state=0)[0]


def of_few_rows():
    return labels_of(rows(150, 4))


def of_more_rows_than_landmarks():
    return labels_of(rows(6000, 3))


def of_dask_rows():
    with dask.config.set(scheduler="sync"):
        return labels_of(da.from_array(rows(3000, 3), chunks=(500, 3)))


def of_sparse_rows():
    random = np.random.default_rng(0)
    words = random.random((600, 60)) < np.where(np.arange(60) // 20 == np.arange(600)[:, None] % 3, 0.3, 0.05)
    words[np.arange(600), np.arange(600) % 60] = True
    return labels_of(sparse.csr_array(words.astype(float)), kernel_params={"metric": "cosine"})


def of_a_mixed_table():
    random, y = np.random.default_rng(0), np.arange(300) % 3
    table = pd.DataFrame({"size": random.normal(size=300) + 2 * y, "age": random.normal(size=300) - y})
    table["kind"] = pd.Categorical((y + (random.random(300) < 0.1)) % 3)
    return labels_of(table, kernel_params={"metric": Gower("from_dtype")})


FITS = [of_few_rows, of_more_rows_than_landmarks, of_dask_rows, of_sparse_rows, of_a_mixed_table]


# What they read

PACKAGE = Path(biclique.__file__).parent


def parsed():
    """The syntax tree of every module, by its name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if path.stem == "__init__" else parts)] = ast.parse(path.read_text("utf-8"))
    return found


TREES = parsed()


def names_in_functions():
    """All names in every function, by its module and first line."""
    found = {}
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                found[module, line] = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return found


NAMES = names_in_functions()


def home(module, name):
    """The module in which a name was given its value, and its name there."""
    for line in TREES[module].body:
        if isinstance(line, ast.ImportFrom) and line.module in TREES:
            for alias in line.names:
                if (alias.asname or alias.name) == name:
                    return home(line.module, alias.name)
    return module, name


def is_number(value):
    if isinstance(value, tuple):
        return len(value) > 0 and all(map(is_number, value))
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def constants_read(fit):
    """The module constants in the functions that a fit runs, in any of its threads."""
    ran = set()

    def note(frame, event, _):
        if event == "call":
            ran.add((frame.f_globals.get("__name__"), frame.f_code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    found = set()
    for place in ran & NAMES.keys():
        for name in filter(str.isupper, NAMES[place]):
            module, own = home(place[0], name)
            if is_number(getattr(sys.modules[module], own, None)):
                found.add(f"{module.removeprefix('biclique.')}.{own}")
    return found


@pytest.fixture(scope="module")
def found():
    return set().union(*map(constants_read, FITS))


def test_the_listed_constants_are_read_and_few(found):
    assert sorted(OF_LABELS.keys() - found) == []
    defaults = inspect.signature(BicliqueSpectralClustering).parameters
    assert all(is_number(defaults[name].default) for name in PARAMETERS)
    kinds = [kind for kind, _ in {**PARAMETERS, **OF_LABELS}.values()]
    assert kinds.count(CLUSTERS) <= MOST_OF_CLUSTERS
    assert kinds.count(CLUSTERS) + kinds.count(LABELS) <= MOST_OF_LABELS


def changed(value, more):
    """Whole numbers halved or doubled, others a tenth less or more."""
    if isinstance(value, int):
        return 2 * value if more else max(value // 2, 1)
    return value * (1.1 if more else 0.9)


@pytest.mark.parametrize("more", [False, True])
def test_constants_that_are_not_listed_do_not_change_labels(found, more, monkeypatch):
    before = [fit() for fit in FITS]
    for name in found - OF_LABELS.keys():
        place, own = f"biclique.{name}".rsplit(".", 1)
        value = changed(getattr(sys.modules[place], own), more)
        for module in TREES.keys() & sys.modules.keys():
            if own in vars(sys.modules[module]) and home(module, own) == (place, own):
                monkeypatch.setattr(sys.modules[module], own, value)
    for fit, expected in zip(FITS, before, strict=True):
        np.testing.assert_array_equal(fit(), expected, err_msg=fit.__name__)
