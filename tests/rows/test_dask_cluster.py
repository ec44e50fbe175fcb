"""Rows on a cluster of worker processes: same bits, deaths in every pass, errors with their place, cancelling."""

import _thread
import multiprocessing
import os
import signal
import threading
import time
import warnings
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DataError, MemoryLimitError
from biclique.progress import Progress
from tests.calls import refuses
from tests.optional import Optional, needs

dask, da, distributed = Optional("dask"), Optional("dask.array"), Optional("distributed")
pytestmark = [needs("distributed"), pytest.mark.once]

CHUNKS = (90, 1, 0, 109, 100)


def model(**parameters):
    return BicliqueSpectralClustering(**{"n_clusters": 4, "random_state": 0, "rank": 40, **parameters})


def delayed(X):
    return da.from_array(X, chunks=(CHUNKS, X.shape[1]))


@pytest.fixture(scope="module")
def client():
    """Two worker processes of two threads; one death of a task is forgiven.

    Processes are forked from a server that has imported everything: those that replace dead ones start at once. This
    file imports no other tests: with those of ``test_dask.py`` in the server, new workers did not always start.
    """
    multiprocessing.set_forkserver_preload(["distributed", "biclique", __name__])
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.comm.retry.count": 2,
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    forkserver.ensure_running()
    with warnings.catch_warnings(), dask.config.set(settings):
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=2, host="127.0.0.1", dashboard_address=None, silence_logs=50
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture(autouse=True)
def quiet():
    """Workers that die leave sockets behind, and distributed says so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ResourceWarning)
        warnings.filterwarnings("ignore", module="distributed|tornado")
        yield


def in_one_thread(X, **parameters):
    """The embedding. Some versions of Dask warn of the scheduler where a client is active."""
    with dask.config.set(scheduler="sync"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Running on a single-machine scheduler")
        return model(**parameters).fit(delayed(X)).embedding_.compute()


@pytest.fixture
def expected(blobs):
    return in_one_thread(blobs[0])


@pytest.mark.parametrize("parameters", [{}, {"affinity": "rbf", "gram": "nystroem", "order": 4}], ids=str)
def test_bits_are_those_of_one_thread(client, blobs, parameters, capsys):
    found = model(verbose=1, **parameters).fit(delayed(blobs[0]))
    np.testing.assert_array_equal(found.embedding_.compute(), in_one_thread(blobs[0], **parameters))
    np.testing.assert_array_equal(found.predict(delayed(blobs[0])).compute(), found.labels_.compute())
    shown = capsys.readouterr().err
    assert f"tasks run on {client.scheduler.address}" in shown
    assert "pass over the rows for the matrix 100%" in shown


def test_blas_has_one_thread_in_every_task(client, blobs):
    from biclique.rows.dask_rows import open_dask_rows

    source = open_dask_rows(delayed(blobs[0]), None, lambda rows, numbers: None)
    found = source.map(lambda block: [pool["num_threads"] for pool in threadpool_info()], "test", Progress(False))
    assert len(found) == 4
    assert all(set(threads) <= {1} for threads in found)


def test_rows_that_are_on_the_workers_already(client, blobs, expected):
    """Dask's optimisation loses the futures of a persisted array: they are put back."""
    X = delayed(blobs[0]).persist()
    found = model().fit(X)
    np.testing.assert_array_equal(found.embedding_.compute(), expected)
    np.testing.assert_array_equal(found.predict(X).compute(), found.labels_.compute())
    weights = da.from_array(np.ones(300), chunks=X.chunks[:1]).persist()
    np.testing.assert_array_equal(model().fit(X, sample_weight=weights).embedding_.compute(), expected)


def deadly(block, folder, block_info=None):
    """Chunk 3, which kills its worker once in every pass, or always if nobody says which pass it is."""
    if block_info is not None and block_info[0]["chunk-location"][0] == 3:
        now = Path(folder) / "now"
        died = Path(folder) / f"died-in-{now.read_text()}" if now.exists() else None
        if died is None or not died.exists():
            if died is not None:
                died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.parametrize(
    ("parameters", "steps"),
    [
        ({}, {"draw", "landmarks"}),  # later passes read what is kept
        ({"affinity": "rbf", "gram": "nystroem", "order": 4}, {"draw", "sums", "matrix", "labels"}),
    ],
    ids=["default", "kernel"],
)
def test_a_worker_dies_in_every_pass(client, blobs, parameters, steps, tmp_path, monkeypatch):
    from biclique.rows.dask_rows import DaskRows

    run = DaskRows._run

    def noted(self, compute, step):
        (tmp_path / "now").write_text(step.split()[-1])
        found = run(self, compute, step)
        if dask.is_dask_collection(found):
            distributed.wait(found)  # what is kept is computed while other steps begin
        return found

    monkeypatch.setattr(DaskRows, "_run", noted)
    X = delayed(blobs[0]).map_blocks(deadly, str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    found = model(**parameters).fit(X)
    assert {path.name for path in tmp_path.glob("died*")} == {f"died-in-{name}" for name in steps}
    np.testing.assert_array_equal(found.embedding_.compute(), in_one_thread(blobs[0], **parameters))


def test_what_is_kept_is_computed_again_if_its_worker_dies(client, blobs, expected, monkeypatch):
    from biclique.rows.dask_rows import DaskRows

    keep, killed = DaskRows.keep, []

    def keep_and_die(self, function, columns, dtype, what, progress):
        kept = keep(self, function, columns, dtype, what, progress)
        distributed.wait(kept.array)
        pids = client.run(os.getpid)
        owner = next(iter(client.who_has(kept.array).values()))[0]
        killed.append(owner)
        os.kill(pids[owner], signal.SIGKILL)
        return kept

    monkeypatch.setattr(DaskRows, "keep", keep_and_die)
    found = model().fit(delayed(blobs[0]))
    assert len(killed) == 2  # the landmarks of rows, and labels
    np.testing.assert_array_equal(found.embedding_.compute(), expected)
    assert found.labels_.compute().shape == (300,)


def test_a_chunk_that_kills_every_worker(client, blobs, tmp_path):
    X = delayed(blobs[0]).map_blocks(deadly, str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    refuses(DataError, r"chunk \d of X, in the pass over the rows for the draw: every worker that took", model().fit, X)


def test_errors_have_their_place(client, blobs):
    gaps = blobs[0].copy()
    gaps[[120, 250], 1] = np.nan
    message = "chunk 3 of X, in the pass over the rows for the draw: X contains NaN: .* row 120, column 1"
    refuses(DataError, message, model().fit, delayed(gaps))


def slow(block):
    time.sleep(0.4)
    return block


def test_cancelling_frees_everything(client, blobs):
    X = da.from_array(np.tile(blobs[0], (8, 1)), chunks=(100, 5)).map_blocks(slow, dtype=float, meta=np.empty((0, 0)))
    timer = threading.Timer(1.0, _thread.interrupt_main)
    found = model()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            found.fit(X)
    finally:
        timer.cancel()  # or it would interrupt the tests that follow, if the fit failed at once
    assert not hasattr(found, "labels_")
    for _ in range(100):
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left:
            break
        time.sleep(0.1)
    assert left == []


# Exact tiles


def test_exact_tiles_on_the_workers(client, blobs, monkeypatch):
    monkeypatch.setattr("biclique.spectral.solver.DIRECT_BELOW", 10)
    X = np.repeat(blobs[0], 2, axis=0)  # equal rows are one vertex, there as here
    exact = {
        "affinity": "rbf",
        "gram": "tiled",
        "rank": "auto",
        "precision": "float64",
        "gamma": 0.05,
        "order": 4,
        "row_normalize": True,
    }
    here = model(**exact).fit(X)
    there = model(**exact).fit(da.from_array(X, chunks=(250, 3)))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.embedding_, here.embedding_, atol=1e-6)
    assert there.gram_ == "tiled"
    np.testing.assert_array_equal(there.predict(delayed(blobs[0])).compute(), here.predict(blobs[0]))
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: 1000)
    refuses(MemoryLimitError, "all 300 rows, here and on every worker, needs", model(**exact).fit, delayed(blobs[0]))


def test_a_worker_dies_in_a_pass_over_tiles(client, tmp_path):
    from biclique.gram.spread import pair_product
    from biclique.gram.tiled import TiledGram
    from biclique.kernels import RBF
    from biclique.rows.dask_tiles import DaskSpread

    path = str(tmp_path / "died")

    def deadly_product(gram, V, i, j):
        if (i, j) == (0, 1) and not os.path.exists(path):
            open(path, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return pair_product(gram, V, i, j)

    rows = np.random.RandomState(0).normal(size=(8192, 3))
    gram, V = TiledGram(RBF(0.5), rows, dtype=np.float64), rows[:, :2]
    spread = DaskSpread()
    spread.keep(gram)
    found = np.concatenate(spread.add_pairs(deadly_product, V, 2))
    again = np.concatenate(spread.add_pairs(pair_product, V, 2))
    assert os.path.exists(path)
    np.testing.assert_array_equal(found, again)
    np.testing.assert_allclose(found, gram.matmat(V), rtol=1e-12)
