"""Rows of Dask collections: fits against those in memory, what every chunk may be, and errors.

Tasks run in threads here; ``test_dask_cluster.py`` has worker processes.
"""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueKernelKMeans, BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.exceptions import ApproximationWarning, DataError, DegreeError, FewerClustersWarning, ParameterError
from biclique.features.maps import NystroemMap
from biclique.kernels.named import make_kernel
from biclique.models.saving import load, save
from biclique.progress import Progress
from biclique.rows.dask_rows import DaskRows, open_dask_rows
from tests.calls import refuses
from tests.optional import Optional, needs

dask, da, dd = Optional("dask"), Optional("dask.array"), Optional("dask.dataframe")
pytestmark = needs("dask")

CHUNKS = (130, 0, 1, 40, 129)
"""Of the 300 rows of the blobs: an empty one and one of a single row among them."""


KERNEL = {"affinity": "rbf", "gram": "nystroem", "order": 4, "row_normalize": True}
LINEAR = {"affinity": "linear", "gram": "features", "rank": "auto", "order": 4, "row_normalize": True}


def model(**parameters):
    return BicliqueSpectralClustering(**{"n_clusters": 4, "random_state": 0, "rank": 60, **parameters})


def delayed(X, chunks=CHUNKS, *, known=True, columns=None):
    """X as a Dask array; ``known`` says whether Dask knows the lengths of its chunks."""
    columns = columns or X.shape[1:]
    found = da.from_array(X, chunks=(chunks, columns) if X.ndim == 2 else (chunks,))
    if not known:
        found = found.map_blocks(
            lambda block: block, chunks=((np.nan,) * len(chunks), *found.chunks[1:]), dtype=X.dtype
        )
    return found


# Fits


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"rank": "auto"},
        {"order": 4, "assign_labels": "cluster_qr"},
        KERNEL,
        {**KERNEL, "order": "auto", "gamma": 0.05},
        {**KERNEL, "gram": "features", "rank": 200},
        LINEAR,
        {**KERNEL, "row_normalize": False, "order": "auto", "gamma": 0.05},
    ],
    ids=str,
)
@pytest.mark.parametrize("known", [True, False], ids=["known lengths", "unknown"])
def test_a_fit_is_the_one_in_memory(blobs, parameters, known):
    X, _ = blobs
    held, found = model(**parameters).fit(X), model(**parameters).fit(delayed(X, known=known))
    assert found.labels_.chunks == (CHUNKS,)
    assert found.embedding_.chunks == (CHUNKS, (4,))
    assert (found.labels_.dtype, found.embedding_.dtype) == (np.intp, np.float64)
    assert found.labels_._meta.shape == (0,)
    labels = found.labels_.compute()
    assert adjusted_rand_score(labels, held.labels_) == 1
    np.testing.assert_allclose(found.embedding_.compute(), held.embedding_, atol=1e-5)
    assert (found.order_, found.gamma_, found.rank_) == (held.order_, held.gamma_, held.rank_)
    np.testing.assert_array_equal(found.predict(X), labels)
    np.testing.assert_allclose(found.transform(X), found.embedding_.compute(), atol=1e-6)


def test_models_of_other_rows_have_other_tokens(blobs):
    X = blobs[0]
    first, again, other = (model().fit(rows) for rows in (X, X, X[::2]))
    assert dask.base.tokenize(first.predict) == dask.base.tokenize(again.predict) != dask.base.tokenize(other.predict)


def test_new_rows_are_lazy(blobs):
    X, _ = blobs
    found = model().fit(delayed(X))
    new = delayed(X + 1e-3, known=False)
    for lazy, now in (
        (found.predict(new), found.predict(X + 1e-3)),
        (found.predict_proba(new), found.predict_proba(X + 1e-3)),
        (found.transform(new), found.transform(X + 1e-3)),
        (found.predict(new, reject_below=0.9), found.predict(X + 1e-3, reject_below=0.9)),
    ):
        assert dask.is_dask_collection(lazy)
        assert np.isnan(lazy.shape[0])
        assert lazy.ndim == now.ndim
        np.testing.assert_allclose(lazy.compute(), now, atol=1e-6)  # products of a single row round otherwise
    assert found.fit_predict(delayed(X)).chunks == (CHUNKS,)
    # A model of rows in memory, too, and an exact one:
    held = model(affinity="rbf", gram="dense", rank="auto").fit(X)
    np.testing.assert_array_equal(held.predict(new).compute(), held.predict(X + 1e-3))


def test_embeddings_and_pieces_of_columns(blobs):
    X, _ = blobs
    parameters = {"n_components": 2, "rank": 60, "random_state": 0}
    found = BicliqueSpectralEmbedding(**parameters).fit_transform(delayed(X, columns=(2, 3)))
    assert found.chunks == (CHUNKS, (2,))
    np.testing.assert_allclose(found.compute(), BicliqueSpectralEmbedding(**parameters).fit_transform(X), atol=1e-5)


@pytest.mark.parametrize("size", [1, 1e-50, 1e39, 1e99])
@pytest.mark.parametrize("way", [{}, KERNEL, LINEAR, {"affinity": "rbf", "gram": "tiled"}])
@pytest.mark.filterwarnings("ignore::biclique.exceptions.RankWarning")  # of LINEAR
def test_weights_of_any_size_are_those_in_memory(blobs, way, size):
    X, _ = blobs
    weights = size * (np.arange(300) % 3 / 2)
    held = model(**way).fit(X, sample_weight=weights)
    found = []
    for scheduler, given in (("sync", weights), ("threads", delayed(weights)), ("sync", delayed(weights, known=False))):
        with dask.config.set(scheduler=scheduler, num_workers=4):
            one = model(**way).fit(delayed(X), sample_weight=given)
            found.append(np.asarray(one.embedding_))
            assert adjusted_rand_score(np.asarray(one.labels_), held.labels_) == 1
        np.testing.assert_allclose(found[-1], held.embedding_, atol=1e-5)
    np.testing.assert_array_equal(found[1], found[2])
    if size == 1:  # the mean, which divides others, rounds otherwise in memory
        np.testing.assert_array_equal(found[0], found[1])


def test_sparse_blocks(blobs):
    X = np.where(np.abs(blobs[0]) > 1, blobs[0], 0.0)
    cut = delayed(X).map_blocks(sparse.csr_matrix)
    for parameters in ({**LINEAR, "affinity": "cosine"}, {"kernel_params": {"metric": "cosine"}}):
        held, found = (model(**parameters).fit(rows) for rows in (sparse.csr_array(X), cut))
        np.testing.assert_allclose(found.embedding_.compute(), held.embedding_, atol=1e-5)
        assert adjusted_rand_score(found.predict(cut).compute(), held.labels_) == 1


@needs("pandas")
def test_frames(blobs, tmp_path):
    import pandas as pd

    frame = pd.DataFrame(blobs[0], columns=list("abcde"))
    frame["a"] = frame["a"].astype("Float64")  # pandas' own kind
    frame["e"] = frame["e"] > 0  # booleans beside numbers
    expected = model().fit(frame.to_numpy(float)).embedding_
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for lazy in (dd.from_pandas(frame, npartitions=3), dd.read_csv(tmp_path / "rows.csv", blocksize=5000)):
        found = model().fit(lazy)
        assert found.feature_names_in_.tolist() == list("abcde")
        assert len(found.labels_.chunks[0]) == lazy.npartitions > 1
        assert found.labels_.shape == (300,)
        np.testing.assert_allclose(found.embedding_.compute(), expected, atol=1e-5)
        np.testing.assert_array_equal(found.predict(lazy).compute(), found.labels_.compute())
    for columns, message in (
        (frame[list("bacde")], "Feature names must be in the same order as they were in fit"),
        (frame[list("abcd")], "Feature names seen at fit time, yet now missing:\n- e"),
        (frame["b"], r"rows and columns, and is a Series of one: pass X\.to_frame\(\)"),
        (frame.assign(e="text"), "X has columns that are not numbers: 'e'"),
        (frame.assign(e=pd.Timestamp("2020-01-01")), r"X holds dates or times in column 4 \('e'\)"),
    ):
        refuses(ValueError, message, found.predict, dd.from_pandas(columns, npartitions=2))


def test_the_number_of_clusters_is_selected_on_the_drawn_rows(blobs):
    X, _ = blobs
    held, found = (model(n_clusters="select").fit(rows) for rows in (X, delayed(X)))
    assert held.n_clusters_ == found.n_clusters_ == 4
    assert adjusted_rand_score(held.labels_, found.labels_.compute()) == 1


def test_an_approximation_that_nobody_asked_for_is_said(blobs):
    with pytest.warns(ApproximationWarning, match="the rows are not in memory"):
        model(affinity="rbf").fit(delayed(blobs[0]))


def test_files_and_pickles_of_models_drop_what_is_lazy(blobs, tmp_path):
    found = model().fit(delayed(blobs[0]))
    save(found, tmp_path / "model.skops")
    for again in (load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(found))):
        assert not hasattr(again, "labels_")
        assert not hasattr(again, "embedding_")
        np.testing.assert_array_equal(again.predict(blobs[0]), found.labels_.compute())
        assert again.predict_proba(delayed(blobs[0])).shape == (300, 4)
    with pytest.raises(ParameterError, match=r"include names 'labels_', lazy .* model\.labels_\.to_zarr"):
        save(found, tmp_path / "other.skops", include=["labels_"])


def test_a_summary_computes_nothing(blobs, monkeypatch):
    found = model().fit(delayed(blobs[0]))
    expected = model().fit(blobs[0]).summary()
    monkeypatch.setattr("dask.base.compute", None)
    assert found.summary().lines[0] == expected.lines[0]
    assert found.summary().lines[0][1].startswith("0: ")


def test_fewer_clusters_than_asked_for(blobs):
    X = np.repeat(blobs[0][:3], 100, axis=0)
    with pytest.warns(FewerClustersWarning, match="3 clusters returned, 4 asked for"):
        found = model().fit(delayed(X))
    assert sorted(np.unique(found.labels_.compute())) == [0, 1, 2]


# Small graphs


def test_a_feature_map_travels_as_its_landmarks_alone():
    landmarks = np.random.RandomState(0).normal(size=(256, 40))
    whole = NystroemMap(make_kernel("rbf", gamma=0.1), landmarks, np.float32)
    light = whole.for_rows()
    assert len(pickle.dumps(light)) < 1.1 * 4 * landmarks.size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(light)).columns(landmarks), whole.columns(landmarks))
    assert whole.project(np.ones(256)).shape == (whole.rank,)


def sums_sent(X, function, monkeypatch):
    """The sum of a function over the chunks of X, and the graphs that it is computed by."""
    graphs, run = [], DaskRows._run

    def caught(self, compute, step):
        sent = dask.optimize(compute.__self__)[0]
        graphs.append(dict(sent.__dask_graph__()))
        return run(self, compute, step)

    monkeypatch.setattr(DaskRows, "_run", caught)
    source = open_dask_rows(X, None, lambda rows, numbers: None)
    return source.sum(function, "test", Progress(False)), graphs[-1]


def test_the_graph_of_a_pass_is_small(monkeypatch):
    import cloudpickle

    landmarks = np.zeros((2048, 100), dtype=np.float32)
    X = da.zeros((2_000 * 4, 10), chunks=(4, 10), dtype=np.float32)
    _, graph = sums_sent(X, lambda block: np.full(1, landmarks[0, 0]), monkeypatch)
    assert len(cloudpickle.dumps(graph, protocol=5)) - landmarks.nbytes < 900 * 2_000


def test_rows_are_read_inside_the_task_that_works_on_them(blobs, monkeypatch):
    alone = da.from_array(blobs[0], chunks=(100, -1)).map_blocks(lambda block: block + 1.0)
    shared = alone + alone[:100].sum()  # the first chunk has two users
    for X, others in ((alone, False), (shared, True)):
        found, graph = sums_sent(X, lambda block: block.rows.sum(axis=0), monkeypatch)
        np.testing.assert_allclose(found, X.compute().sum(axis=0), rtol=1e-12)
        tasks = [key for key, node in graph.items() if isinstance(key, tuple) and not hasattr(node, "value")]
        assert any("biclique" not in key[0] for key in tasks) == others


# Errors and warnings


def with_nan(X, row):
    X = X.copy()
    X[row, 2] = np.nan
    return X


def test_a_missing_value_is_named_with_its_pass_chunk_and_row(blobs):
    X = with_nan(with_nan(blobs[0], 160), 145)
    message = r"chunk 3 of X, in the pass over the rows for the (draw|sums): X contains NaN: .* row 145, column 2"
    refuses(DataError, message, model().fit, delayed(X))
    found = model().fit(delayed(blobs[0]))
    with pytest.raises(DataError, match=r"chunk 3 of X, in the computation of a lazy result: X contains NaN.*row 145"):
        found.predict(delayed(X)).compute()
    with pytest.raises(DataError, match=r"counted from the start of the chunk\) X contains NaN.*row 14,"):
        found.predict(delayed(X, known=False)).compute()


def test_rows_whose_squares_vanish_are_refused_as_in_memory(blobs):
    X = blobs[0] * 1e-200
    for rows in (X, delayed(X)):
        refuses(DataError, r"X has no value beyond .* and such squares vanish", model().fit, rows)
    X = np.array(blobs[0])
    X[131:171] *= 1e-200  # a chunk
    np.testing.assert_array_equal(model().fit(delayed(X)).labels_.compute(), model().fit(X).labels_)


def test_a_bad_row_that_was_not_drawn(blobs, monkeypatch):
    from biclique.fit import low_rank

    monkeypatch.setattr(low_rank, "POOL_ROWS", 100)
    weights = np.ones(300)
    weights[131:] = 0
    message = r"chunk 3 of X, in the pass over the rows for the weights: X contains NaN: .* row 145, column 2"
    refuses(DataError, message, model(rank=20).fit, delayed(with_nan(blobs[0], 145)), sample_weight=delayed(weights))
    with pytest.raises(DataError, match=r"in the pass over the rows for the (draw|sums): affinity='chi2' needs"):
        model(**{**KERNEL, "affinity": "chi2"}, rank=20).fit(delayed(-np.abs(blobs[0])))


@pytest.mark.parametrize("change", [lambda block: block + 1, lambda block: block[:-1]])
@pytest.mark.parametrize(
    ("parameters", "step"), [({}, "nearest landmarks"), ({**KERNEL, "rank": 60}, "matrix")], ids=["default", "kernel"]
)
def test_a_chunk_that_changes_between_passes(blobs, change, parameters, step):
    steps = iter(("draw", "sums", "matrix") if parameters else ("draw", "nearest landmarks"))

    def read(block, block_info=None):
        if block_info is None or block_info[0]["chunk-location"][0] != 3:
            return block
        return change(block) if next(steps) == step else block

    X = delayed(blobs[0]).map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(DataError, match=rf"chunk 3 of X, .* {step}: (its rows are not those of an earlier|it has 39)"):
        model(**parameters).fit(X)


def test_rows_are_read_twice_by_the_default(blobs):
    """The landmarks of rows are found once; their numbers are kept."""
    reads = []

    def read(block, block_info=None):
        if block_info is not None:
            reads.append(block_info[0]["chunk-location"][0])
        return block

    model().fit(delayed(blobs[0]).map_blocks(read, dtype=float, meta=np.empty((0, 0)))).labels_.compute()
    assert sorted(reads) == sorted([*range(5)] * 2)


def masked(values, *place):
    found = np.ma.masked_array(values)
    found[place] = np.ma.masked
    return found


def fails_to_read(block, block_info=None):
    if block_info is not None and block_info[0]["chunk-location"][0] == 3:
        raise OSError("no such file: rows-3.parquet")
    return block


NUMBERS = np.arange(1500.0).reshape(300, 5)
ONES = np.ones(300)

BAD_ROWS = {
    "one axis": (lambda: delayed(NUMBERS)[:, 0], "X must have two axes"),
    "no collection of rows": (lambda: dask.delayed(NUMBERS), "an array or a data frame is needed"),
    "no columns": (lambda: delayed(NUMBERS)[:, :0], "X has 0 columns"),
    "text": (lambda: da.from_array(np.full((9, 2), "abc"), chunks=3), "X holds <U3, not numbers"),
    "objects": (
        lambda: da.from_array(NUMBERS.astype(object), chunks=100),
        r"X holds object, not numbers: .* \(X\.astype\(float\), if each of them is one\)",
    ),
    "other lengths": (
        lambda: delayed(NUMBERS).map_blocks(lambda block: block[:-1] if len(block) == 40 else block, dtype=float),
        r"chunk 3 of X.*it has 39 rows, and Dask says 40",
    ),
    "masked": (
        lambda: delayed(masked(NUMBERS, 137, 1)),
        r"chunk 3 of X, .* draw: X has masked values, the first in row 137",
    ),
    "cannot be read": (
        lambda: delayed(NUMBERS).map_blocks(fails_to_read, dtype=float, meta=np.empty((0, 0))),
        r"chunk 3 of X, in the pass .* draw: it cannot be read \(OSError: no such file",
    ),
}

BAD_WEIGHTS = {
    "other chunks": (
        lambda: da.ones(300, chunks=100),
        "sample_weight has 300 numbers in 3 chunks, X has 300 rows in 5",
    ),
    "other lengths": (lambda: da.ones(300, chunks=60), "sample_weight has 300 numbers in 5 chunks, X has 300 rows in"),
    "too few": (lambda: da.ones(299, chunks=100), "sample_weight has 299 numbers in 3 chunks, X has 300 rows in 5"),
    "two axes": (lambda: da.ones((300, 1), chunks=100), r"must have one axis, and has shape \(300, 1\)"),
    "negative": (
        lambda: delayed(np.where(np.arange(300) == 140, -1.0, 1.0)),
        r"chunk 3 of X, .* sample_weight must be finite and not negative, got -1 in row 140",
    ),
    "masked": (
        lambda: delayed(masked(ONES, 141)),
        r"chunk 3 of X, .* sample_weight has masked values, the first in row 141",
    ),
    "dates": (lambda: delayed(np.full(300, "2020-01-01", dtype="M8[s]")), "must be numbers, one for each row, got"),
    "complex": (lambda: delayed(ONES * 1j), "sample_weight must be numbers, one for each row, got"),
    "text": (lambda: delayed(np.full(300, "1")), "sample_weight must be numbers, one for each row, got"),
    "zero": (lambda: delayed(ONES * 0), "sample_weight is zero in every row"),
    "tiny": (lambda: delayed(ONES * 1e-200), "sample_weight is at most 1e-200, and its square is lost: divide it"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows(case):
    X, message = BAD_ROWS[case]
    refuses(DataError, message, model().fit, X())


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(case):
    weights, message = BAD_WEIGHTS[case]
    refuses(DataError, message, model().fit, delayed(NUMBERS), sample_weight=weights())


def test_what_is_refused(blobs):
    X, _ = blobs
    lazy = delayed(X)
    with (
        dask.config.set({"array.query-planning": True}),
        pytest.raises(DataError, match=r"array\.query-planning is on, .*: leave it off"),
    ):
        model().fit(lazy)
    refuses(DataError, "X has 300 rows, fewer than n_clusters=301", model(n_clusters=301, rank="auto").fit, lazy)
    refuses(ParameterError, "modelling='biclique'", model(affinity="rbf", modelling="symmetric", order=3).fit, lazy)
    refuses(DataError, "rows in memory are needed here", BicliqueKernelKMeans(4).fit, lazy)
    refuses(DataError, "representatives needs rows in memory", model().fit(lazy).representatives, lazy)
    refuses(DataError, "use predict_proba", model().fit(lazy).membership, lazy)
    with pytest.raises(DegreeError):
        model(**{**LINEAR, "order": 2}).fit(delayed(X - X.mean(axis=0)))
    with pytest.raises(ZeroDivisionError):
        model(**{**KERNEL, "affinity": lambda x, y: 1 / 0}, rank=20).fit(delayed(X[:40], (20, 20)))


@pytest.mark.parametrize("weighted", [False, True])
def test_no_rows(blobs, weighted):
    X, given = blobs[0], {"sample_weight": da.zeros(0)} if weighted else {}
    for parameters in ({"rank": 20}, {"rank": "auto"}, {"affinity": "rbf", "gram": "tiled", "rank": "auto"}):
        with pytest.raises(
            DataError, match=r"X has no rows \(its only chunk is empty\): at least 2 are needed\. Look at"
        ):
            model(**parameters).fit(da.zeros((0, 2)), **given)
    lazy = delayed(X)
    none = lazy[lazy[:, 0] > 1e9]  # lengths that Dask does not know
    given = {"sample_weight": lazy[:, 1][lazy[:, 0] > 1e9]} if weighted else {}
    refuses(DataError, r"X has no rows \(all 5 chunks are empty\)", model(rank=20).fit, none, **given)
    assert model().fit(X).predict(none).compute().shape == (0,)


def test_verbose_says_what_was_read(blobs, capsys):
    model(verbose=1).fit(delayed(blobs[0], known=False))
    shown = capsys.readouterr().err
    assert "the lengths of the chunks were not known: they are read once" in shown
    assert "pass over the rows for the matrix 100%" in shown
