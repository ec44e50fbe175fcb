"""Rows left out at order 2: a few that are like hardly any other would each take a cluster of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.fit.exact_fitted import Solved
from biclique.fit.holding import Prepared, given_gram
from biclique.runtime.namespace import on_host
from biclique.spectral import PROPOSAL_ROWS, Attempt

if TYPE_CHECKING:
    from biclique.fit.exact import ExactSearch

MOST_SIFTINGS, SIFTING_PASSES = 10, 20
"""How often rows may be left out, and, of many rows, the passes for all that while no clusters stand."""

LONE = 0.9
"""A row with more than this share of its degree from itself is like hardly any other."""


def leave_out_dust(search: ExactSearch, first: Attempt[Solved], dust: IntArray) -> Attempt[Solved]:
    """An attempt at order 2, or that of the rows that are left when its dust is left out.

    That is done a few times, while all the dust is less than a cluster. If there are clusters of dust still, all rows
    are back. Clusters may stand although an eigenvector lives on a few rows: then these are left out too.
    """
    rule, prepared, n = search.rule, search.prepared, search.n
    many = n > PROPOSAL_ROWS  # whose passes are dear: no more is begun than can succeed
    if not may_leave_out(prepared) or (many and _lone(first) > 2 * rule.least):
        return first
    found, best, held = first, first, prepared
    passes = SIFTING_PASSES if many else MOST_SIFTINGS * search.options.max_passes
    left_out: IntArray = np.empty(0, dtype=np.intp)
    stays: IntArray = np.arange(n)
    for _ in range(MOST_SIFTINGS):
        left_out = np.append(left_out, stays[dust])
        share = float(prepared.vertices.weights[left_out].sum()) / rule.total
        if not len(dust) or rule.share_of(left_out, prepared.vertices.weights) > rule.least or passes <= 0:
            break
        probe, stays = _start(search, found.result, dust), np.delete(stays, dust)
        search.hold(prepared)  # what was left of it is let go before less is made
        search.hold(_without(prepared, left_out, probe))
        found, dust = search.tried(first.order, None, passes)
        passes -= found.result.cut.n_passes
        if many and not (len(dust) or found.result.pairs.converged):  # clusters that stand are worth more passes
            found, dust = search.tried(first.order, found)
            passes = SIFTING_PASSES
        few = f"{share * rule.total:.4g} of {rule.total:.6g} rows, like hardly any other, left out"
        sifted = replace(found, note=few, smallest=found.smallest * (1 - share))
        if rule.passes(sifted) and (found.result.pairs.converged or not many):
            best, held = sifted, search.prepared
            if not len(dust):
                break
    if search.prepared is not held:
        search.hold(held)
    return best


def may_leave_out(prepared: Prepared) -> bool:
    """Whether a few rows can be left out: they are met again as new rows are."""
    base, vertices = prepared.base, prepared.vertices
    known = prepared.kernel is not None or vertices.given
    possible = base.chooses_rows and on_host(base.like) and not prepared.symmetric and prepared.nearness is None
    needed = base.bytes_for(vertices.n, vertices.data.shape[1], 0, base.dtype)
    return known and possible and needed <= prepared.spare


def _without(prepared: Prepared, left_out: IntArray, probe: FloatArray | None) -> Prepared:
    """The same for all rows but a few; ``probe`` is a start for the others."""
    vertices = prepared.vertices.without(left_out)
    if vertices.given:
        base = given_gram(vertices.data, prepared.base.n_jobs)
    else:
        base = prepared.base.restricted(np.delete(np.arange(prepared.vertices.n), left_out))
    return replace(prepared, vertices=vertices, base=base, probe=probe)


def _lone(attempt: Attempt[Solved]) -> float:
    """The share of the weight of rows whose degree is nearly all their own."""
    cut = attempt.result.cut
    return float(cut.weights[cut.own_values > LONE].sum() / cut.weights.sum())


def _start(search: ExactSearch, solved: Solved, left_out: IntArray) -> FloatArray | None:
    """What the search without some rows starts from: the vectors that were found, and some at random."""
    if not search.iterates:
        return None
    vectors, cut = solved.pairs.vectors, solved.cut
    known = vectors / np.sqrt(cut.weights * cut.shrunken)[:, None]
    more = max(search.block - vectors.shape[1], 0)
    scale = float(np.abs(known).mean()) if known.size else 1.0
    others = np.random.RandomState(search.seed).standard_normal((search.n, more)) * scale
    return np.delete(np.column_stack([known, others]), left_out, axis=0)
