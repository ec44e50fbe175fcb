"""The symmetric model at the ends of the range of numbers; its definition is tested in test_biclique.py."""

import warnings

import numpy as np
import pytest

from biclique.exceptions import DataError, ParameterError
from biclique.kernels import Linear
from biclique.multiway import base_gram, biclique_degrees, biclique_gram, symmetric_gram, symmetric_kernel


def test_huge_orders_and_values_are_errors_of_ours():
    K = np.eye(3) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for order in (1e200, 10**300, 1e308):
            with pytest.raises(ParameterError, match="too large for the symmetric model"):
                symmetric_gram(K, order)
        with pytest.raises(ParameterError, match="pass inf"):
            symmetric_gram(K, 10**400)
        with pytest.raises(ParameterError, match="at least 2, got -1e"):
            symmetric_gram(K, -(10**400))
        for scaled in (symmetric_gram, biclique_gram, base_gram):
            with pytest.raises(ParameterError, match=r"order=3000 with scaled=True multiplies by 3\^2998"):
                scaled(K, 3000, scaled=True)
        with pytest.raises(ParameterError, match="scaled=True"):
            biclique_degrees(np.ones(3), 3000, scaled=True)
        with pytest.raises(DataError, match="K_s leaves the range of numbers: divide K"):
            symmetric_gram(K * 8e307, 5)
        with pytest.raises(DataError, match="scale their columns"):
            symmetric_kernel(Linear(), [[1e200], [1e200]])
