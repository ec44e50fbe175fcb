import multiprocessing
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from biclique.runtime import threads
from biclique.runtime.threads import count_threads, each_group, run_groups, single_threaded_blas


def blas_threads(kind="blas"):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == kind]


def test_results_come_in_order_whoever_finishes_first():
    def work(group, pulse):
        time.sleep(0.01 * (5 - group))
        return group

    assert run_groups(work, 5, n_jobs=5) == [0, 1, 2, 3, 4]


def test_blas_is_held_to_one_thread_and_released(free_blas):
    before = blas_threads()
    assert set(before) == {2}
    with single_threaded_blas():
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_the_last_to_leave_lifts_the_limit_whichever_thread_it_is(free_blas):
    inside, entered, left = threading.Event(), threading.Event(), threading.Event()

    def first():
        with single_threaded_blas():
            inside.set()
            entered.wait()
        left.set()

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    for _ in range(3):
        with single_threaded_blas():
            entered.set()
            left.wait()
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}
    thread.join()


def test_pools_are_looked_for_again_only_after_an_import(free_blas, monkeypatch):
    looked = []
    monkeypatch.setattr(threads, "ThreadpoolController", lambda: looked.append(1) or ThreadpoolController())
    for name in ("a_module_that_may_have_brought_a_pool", "another"):
        monkeypatch.setitem(sys.modules, name, sys)
        for _ in range(3):
            with single_threaded_blas():
                pass
    assert len(looked) == 2


def test_openmp_is_held_in_each_thread_and_released(free_blas):
    """Each thread has a number of OpenMP threads of its own: as one of Dask's that enters while another is inside."""
    pytest.importorskip("sklearn.cluster")  # loads an OpenMP library
    found, inside, leave = {}, threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)

    def task(name):
        with threadpool_limits(2):
            before = blas_threads("openmp")
            with single_threaded_blas():
                inside.wait()
                with single_threaded_blas():
                    found[name] = [before, blas_threads("openmp")]
                leave.wait()
            found[name].append(blas_threads("openmp"))

    tasks = [threading.Thread(target=task, args=(name,)) for name in "ab"]
    for thread in tasks:
        thread.start()
    for thread in tasks:
        thread.join()
    assert found["a"] == found["b"]
    assert [set(threads) for threads in found["a"]] == [{2}, {1}, {2}]


def test_openmp_is_held_in_threads_of_ours(free_blas):
    def work(group, pulse):
        return blas_threads("openmp")

    assert {count for counts in run_groups(work, 4, n_jobs=2) for count in counts} == {1}
    assert set(blas_threads("openmp")) == {2}


def test_ticks_tell_the_share_done():
    shares = []

    def work(group, pulse):
        for _ in range(5):
            pulse()

    run_groups(work, 2, n_jobs=2, total=10, tick=shares.append)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupt_stops_the_other_workers_at_their_next_tile(error):
    started, left = threading.Event(), threading.Event()

    def work(group, pulse):
        if group == 0:
            started.wait()
            raise error
        try:
            started.set()
            while True:
                time.sleep(0.001)
                pulse()
        finally:
            left.set()

    with pytest.raises(error):
        run_groups(work, 2, n_jobs=2)
    assert left.is_set()


def test_thread_counts():
    assert count_threads(3) == 3
    assert count_threads(None) == count_threads(-1) >= 1
    assert np.isscalar(count_threads(None))


def test_in_a_process_of_a_pool_threads_are_counted_without_a_warning(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # joblib's, about Loky
        assert [count_threads(n) for n in (None, -1, 1, 3)] == [1, 1, 1, 3]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_that_were_taken_are_not_kept(n_jobs):
    class Result:
        """What a weak reference can follow."""

    def work(group, pulse):
        pulse()
        return Result()

    results = each_group(work, 8, n_jobs=n_jobs)
    for _ in range(8):
        taken = weakref.ref(next(results))
        end = time.monotonic() + 10  # the thread that made it may be about to let go of it
        while taken() is not None and time.monotonic() < end:
            time.sleep(0.01)
        assert taken() is None
    assert next(results, None) is None
