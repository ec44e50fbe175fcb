"""
The table of the tutorial
=========================

400 customers of four kinds, with ids, a city, dates, prices as text, a note and gaps.
``python examples/customers.py`` writes ``customers.csv``.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd


def customers(n: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(0)
    kind = random.choice(4, n, p=[0.45, 0.30, 0.17, 0.08])
    usual = np.array(["Oslo", "Rome", "Bern", "Oslo"])[kind]
    city = np.where(random.random(n) < 0.85, usual, random.choice(["Oslo", "Rome", "Bern"], n))
    spent = np.exp(np.array([3.2, 4.6, 2.6, 5.6])[kind] + random.normal(0, 0.25, n))
    days = pd.to_timedelta(random.integers(0, 1000, n), "D")
    table = pd.DataFrame(
        {
            "customer": [f"C{number:04d}" for number in range(n)],
            "age": np.round(np.array([34, 58, 27, 45])[kind] + random.normal(0, 5, n)),
            "visits": np.round(np.array([2, 9, 5, 22])[kind] + random.normal(0, 1.3, n), 1),
            "spent": [f"${value:,.2f}" for value in spent],
            "city": city,
            "joined": (pd.Timestamp("2021-01-01") + days).strftime("%Y-%m-%d"),
            "note": [f"called on day {day}" for day in random.integers(0, 10**6, n)],
        }
    )
    table.loc[random.choice(n, 12, replace=False), "age"] = np.nan
    return table


if __name__ == "__main__":
    path = sys.argv[1] if sys.argv[1:] else "customers.csv"
    customers().to_csv(path, index=False)
    print(path)
