"""A short campaign of random fits; BICLIQUE_FUZZ=3000 makes it a long one."""

import os

from tests.fuzz.fits import run

FITS = int(os.environ.get("BICLIQUE_FUZZ", "25"))


def test_random_fits():
    report = run(FITS, seed=0)
    assert report.count == FITS
    assert not report.failures, "\n".join(report.failures[:5])
