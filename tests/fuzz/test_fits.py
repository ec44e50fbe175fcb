"""A short campaign of random fits; BICLIQUE_FUZZ=3000 makes it a long one."""

import os

from tests.fuzz.fits import run

FITS = int(os.environ.get("BICLIQUE_FUZZ", "25"))


def test_random_fits():
    failures = run(FITS, seed=0)
    assert not failures, "\n".join(failures[:5])
