"""
A messy table to a report
=========================

400 customers with ids, a city, dates, prices as text, a note and gaps: what the tool says about the
table, and the way from there to a page to send.

``python examples/customers.py`` writes the table, to try the command line on.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from customers import customers
from sklearn.pipeline import make_pipeline

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DataError
from biclique.report import plot_profile
from biclique.tables import TablePreparer

# %%
# The table
# ---------
#
# Four kinds of customers, which nobody has written down.


table = customers()
print(table.head(3).to_string())

# %%
# What is wrong with it
# ---------------------
#
# One error for all columns. It ends with the settings that deal with them. On the command line
# it ends with a command to paste.

try:
    TablePreparer().fit(table)
except DataError as error:
    print(error)

# %%
# From the table to clusters
# --------------------------
#
# The dates are dropped: when a customer joined should not decide.

preparer = TablePreparer(drop=["customer", "note"], categorical=["city"], dates="drop", missing="mean").set_output(
    transform="pandas"
)
model = make_pipeline(preparer, BicliqueSpectralClustering("select", random_state=0)).fit(table)
clusterer = model[-1]
print(clusterer.summary())

# %%
# What sets the clusters apart
# ----------------------------

X = preparer.transform(table)
plot_profile(clusterer, X)
plt.show()

# %%
# A page to send
# --------------

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "customers.html"
    shown = table[["age", "visits", "spent", "city", "joined"]]
    clusterer.report(X, page, table=shown, ids=table["customer"], title="400 customers")
    print(f"{page.name}: {page.stat().st_size / 1000:.0f} kB")
