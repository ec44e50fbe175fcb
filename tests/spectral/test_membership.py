"""Pieces of how sure a label is."""

import numpy as np
from scipy.special import erfcx, log_ndtr

from biclique.spectral.membership import FAR, OUTER, _hazard, outer_share


def test_the_hazard_of_a_normal_distribution_near_and_far():
    z = np.array([-30.0, -1.0, 0.0, 5.0, 1e3, FAR * 0.999, FAR, 1e9, 1e150])
    exact = np.sqrt(2 / np.pi) / erfcx(z / np.sqrt(2))
    assert np.allclose(_hazard(z, log_ndtr(-z)), exact, rtol=1e-7, atol=0)


def test_a_quarter_is_not_placed_above_order_two_and_at_order_two_as_many_rows_as_are_averaged_over():
    assert outer_share(900, folded=True) == OUTER
    assert 900 * outer_share(900, folded=False) == np.sqrt(900)
    assert outer_share(4, folded=False) == OUTER
