"""The first sentence of a report, for a reader who has never heard of spectral clustering."""

from __future__ import annotations

from biclique.report.rows import Facts, Subject

NAMED_PAIRS = 2
"""Pairs of clusters that the sentence names."""


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
    parts.append(nowhere_text(int(facts.nowhere.sum()), len(facts.labels)))
    return f"{'; '.join(parts)}."


def nowhere_text(count: int, total: int) -> str:
    """``2 % of the rows fit nowhere well``."""
    if not count:
        return "every row fits its cluster"
    return f"{percent(count / total)} of the rows {'fits' if count == 1 and total == 1 else 'fit'} nowhere well"


def percent(share: float) -> str:
    """A share of rows: ``2 %``, ``0.4 %``, ``under 0.1 %``; 0 and 100 only if that is so."""
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    if share < 0.001:
        return "under 0.1 %"
    if share > 0.999:
        return "over 99.9 %"
    digits = 1 if share < 0.0095 or share > 0.9905 else 0
    return f"{100 * share:.{digits}f} %"
