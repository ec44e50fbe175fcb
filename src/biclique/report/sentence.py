"""What is found, in words and numbers for a reader who has never heard of spectral clustering."""

import math

from biclique.report.rows import Facts, Subject
from biclique.report.shown_columns import YEAR

NAMED_PAIRS = 2
"""Pairs of clusters that the first sentence names."""

STABLE = 0.85
"""A stability from which on Hennig calls a cluster stable."""

DISSOLVED = 0.6
"""A stability below which Hennig calls a cluster dissolved."""


def first_sentence(subject: Subject, facts: Facts) -> str:
    """``7 clusters; cluster 3 is hard to tell from 5; 2 % of the rows fit nowhere well.``"""
    found = int((facts.sizes > 0).sum())
    parts = ["1 cluster" if found == 1 else f"{found} clusters"]
    if subject.counted is not None and subject.counted.has_structure is False:
        parts[0] = f"No sign of separate groups: the {found} clusters cut one cloud into pieces"
    pairs = facts.hard_pairs()
    parts += [f"cluster {a} is hard to tell from {b}" for a, b, _ in pairs[:NAMED_PAIRS]]
    if len(pairs) > NAMED_PAIRS:
        more = len(pairs) - NAMED_PAIRS
        parts.append(f"{more} more {'pair is' if more == 1 else 'pairs are'} hard to tell apart")
    lost, n = int(facts.nowhere.sum()), facts.n_rows
    fit = "fits" if n == 1 else "fit"
    parts.append(f"{percent(lost / n)} of the rows {fit} nowhere well" if lost else "every row fits its cluster")
    return f"{'; '.join(parts)}."


def doubtful_text(facts: Facts) -> str:
    """``63 rows fit nowhere well: between clusters 4, far from all others 59.``"""
    lost, far = int(facts.nowhere.sum()), int(facts.faint.sum())
    if not lost:
        return "Every row fits its cluster."
    rows = "1 row fits" if lost == 1 else f"{lost:,} rows fit"
    return f"{rows} nowhere well: between clusters {lost - far:,}, far from all others {far:,}."


def percent(share: float) -> str:
    """A share of rows: ``2 %``, ``0.4 %``, ``under 0.1 %``; 0 and 100 only if that is so."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    if share < 0.001:
        return "under 0.1 %"
    if share > 0.999:
        return "over 99.9 %"
    digits = 1 if share < 0.0095 or share > 0.9905 else 0
    return f"{100 * share:.{digits}f} %"


def stability_text(stability: float) -> str:
    """``0.93, stable``."""
    if math.isnan(stability):
        return "not computed"
    word = "stable" if stability >= STABLE else "not stable" if stability < DISSOLVED else "fairly stable"
    return f"{stability:.2f}, {word}"


def number_text(value: float) -> str:
    """Three digits, as people write them."""
    if math.isnan(value):
        return "missing"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
        text = f"{value:,.{min(digits, 6)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.2e}"


def value_text(column: str, value: float) -> str:
    """A value of a column of numbers, or of dates: 2024.5 is 2024-07."""
    if not (column.endswith(YEAR) and math.isfinite(value)):
        return number_text(value)
    return f"{math.floor(value)}-{math.floor(value % 1 * 12) + 1:02d}"
