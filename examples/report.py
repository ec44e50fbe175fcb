"""
A page to look at and to send
=============================

Wine, clustered and explained in one HTML page.

.. image:: /images/report.png

``python examples/report.py`` writes ``wine.html``, ``--out page.html`` another file. The rows are scaled for the
fit; the page shows the columns as they are in the table. It needs pandas.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from biclique import BicliqueSpectralClustering

# sphinx_gallery_thumbnail_path = 'images/report.png'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("wine.html"))
    options = parser.parse_args()
    table = load_wine(as_frame=True).data
    rows = StandardScaler().fit_transform(table)
    model = BicliqueSpectralClustering("select", random_state=0).fit(rows)
    print(model.summary())
    ids = [f"bottle {number}" for number in range(len(table))]
    model.report(rows, options.out, table=table, ids=ids, title="178 wines")
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
