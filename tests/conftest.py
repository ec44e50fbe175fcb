"""Data shared by the tests. Arrays are read-only: nothing in the package may write into its input."""

import signal

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs

# A shell hides Ctrl-C from what runs in its background, and nohup hides SIGHUP; tests send both.
for _name, _handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, _name) and signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _name), _handler)


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
