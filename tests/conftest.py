"""Data shared by the tests. Arrays are read-only: nothing in the package may write into its input."""

import signal

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from threadpoolctl import threadpool_limits

from biclique.runtime import threads
from biclique.runtime.threads import single_threaded_blas

# A shell hides Ctrl-C from what runs in its background, and nohup hides SIGHUP; tests send both.
for _name, _handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, _name) and signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _name), _handler)


@pytest.fixture(scope="session", autouse=True)
def held_blas():
    """BLAS with one thread, entered once: else each of thousands of fits asks every library of the process for it."""
    with single_threaded_blas():
        yield


@pytest.fixture
def free_blas(monkeypatch):
    """For a test of threads: nobody holds BLAS, and it has two threads at first."""
    monkeypatch.setattr(threads, "_blas", threads._OneThread("blas"))
    monkeypatch.setattr(threads, "_here", threads._Here())
    with threadpool_limits(2):
        yield


def frozen(X):
    X = np.array(X)
    X.setflags(write=False)
    return X


@pytest.fixture(scope="session")
def iris():
    return frozen(load_iris().data), load_iris().target


@pytest.fixture(scope="session")
def blobs():
    """300 rows, 4 well separated groups in 5 dimensions, all positive."""
    X, y = make_blobs(300, 5, centers=4, cluster_std=0.6, random_state=3)
    return frozen(X - X.min() + 0.5), y


@pytest.fixture(scope="session")
def many_blobs():
    """3,000 rows, 5 groups in 6 dimensions that touch."""
    X, y = make_blobs(3000, 6, centers=5, cluster_std=1.8, random_state=1)
    return frozen(X), y
