"""Hypergraphs: HIF, hMetis and edge lists."""

from __future__ import annotations

from biclique.hypergraph import read_hypergraph
from tests.fuzz.campaign import Reader
from tests.fuzz.mutate import Files


def hgr() -> list[Files]:
    return [{"": b"3 4\n1 2\n2 3 4\n1 4\n"}, {"": b"% weights\n2 3 11\n5 1 2\n7 2 3\n1\n2\n3\n"}]


READERS = {"hgr": Reader(hgr, read_hypergraph, "graph.hgr")}
