"""What the script of a page draws: bytes as base64, and short texts."""

import base64
import math
from collections.abc import Sequence
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np

from biclique._typing import FloatArray
from biclique.report.charts import COLOURS, SHAPES
from biclique.report.gather import ReportData
from biclique.report.markup import json_text, shown
from biclique.report.places import View

NAMED = 40
"""Characters of a name that are shown where there is little room."""

ID_LENGTHS = (200, NAMED, 20, 10)
"""Characters of an id that are kept, the first number at which all ids fit into ``ID_BYTES``."""

LEVEL_LENGTHS = (24, 12, 6)
"""The same for the levels of categories and ``LEVEL_BYTES``."""

ID_BYTES, LEVEL_BYTES = 500_000, 150_000
"""Bytes that all ids, and all levels, may take in the page."""


def map_data(data: ReportData) -> dict[str, Any]:
    """What the script draws: bytes as base64, and short texts."""
    drawn, facts = data.drawn, data.facts
    categories = [one for one in data.columns if one.means is None]
    levels = iter(
        _within([str(level) for one in categories for level in one.coded.values], LEVEL_LENGTHS, LEVEL_BYTES) or []
    )
    labels = facts.labels[drawn].astype("<u2")
    # If ids are cut or spelled out, row numbers are copied in their place.
    ids = None if data.ids is None else _within(data.ids, ID_LENGTHS, ID_BYTES)
    found: dict[str, Any] = {
        "n": len(drawn),
        "key": f"{crc32(labels.tobytes()):08x}",
        "clusters": data.subject.n_clusters,
        "colours": COLOURS,
        "shapes": SHAPES,
        "rows": _packed(drawn.astype("<u4")),
        "labels": _packed(labels),
        "sure": _packed(np.round(255 * facts.best[drawn]).astype(np.uint8)),
        "nowhere": _packed(facts.nowhere[drawn].astype(np.uint8)),
        "sizes": facts.sizes.tolist(),
        "all": facts.n_rows,
        "ids": ids,
        "exactIds": ids is not None and ids == data.ids,
        "views": [_view(view) for view in data.views],
        "columns": [
            {
                "name": shown(one.coded.name, NAMED),
                "codes": _packed(one.coded.codes),
                "values": one.coded.values if one.means is not None else list(islice(levels, len(one.coded.values))),
                "exact": one.coded.exact,
                "category": one.means is None,
            }
            for one in data.columns
        ],
        "path": None,
        "matrix": None,
    }
    path, cells, clusters = data.sampled.path, data.sampled.cells, data.sampled.clusters
    if path is not None:
        found["path"] = {
            "orders": [order_text(order) for order in path.orders],
            "own": path.own,
            "places": _packed(data.places.astype("<u4")),
            "labels": [_packed(one.astype("<u2")) for one in path.labels],
        }
    if cells is not None and clusters is not None:
        found["matrix"] = {"size": len(cells), "cells": _packed(_darkness(cells)), "clusters": clusters.tolist()}
    return found


def _packed(values: np.ndarray) -> str:
    """Bytes as text."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _within(texts: list[str], lengths: Sequence[int], room: int) -> list[str] | None:
    """Texts cut to the first of some lengths at which they take no more than ``room`` bytes of the page."""
    for length in lengths:
        cut = [shown(text, length) for text in texts]
        if len(json_text({"": cut}).encode("utf-8", "replace")) <= room:  # some characters take six bytes
            return cut
    return None


def _view(view: View) -> dict[str, Any]:
    """Coordinates from 0 to 65,535, on one scale if the view is even, and the room that they take, at most 1."""
    low, high = view.places.min(axis=0), view.places.max(axis=0)
    spans = np.full(2, (high - low).max()) if view.even else high - low
    spans = np.where(spans > 0, spans, 1.0)
    x, y = (_packed(axis) for axis in np.round((view.places - low) / spans * 65_535).astype("<u2").T)
    wide, tall = ((high - low) / spans).tolist()
    axes = [shown(name, NAMED) for name in view.axes]
    return {"name": view.name, "axes": axes, "x": x, "y": y, "wide": wide, "tall": tall, "even": view.even}


def _darkness(cells: FloatArray) -> np.ndarray:
    """From 0 to 255: the 99th percentile of what is off the diagonal, and more, is darkest."""
    off = cells[~np.eye(len(cells), dtype=bool)]
    low = min(float(cells.min()), 0.0)
    high = float(np.quantile(off, 0.99)) if len(off) else 1.0
    high = high if high > low else float(cells.max())
    return np.asarray(np.round(255 * np.clip((cells - low) / ((high - low) or 1.0), 0.0, 1.0)), dtype=np.uint8)


def order_text(order: float) -> str:
    """``2.1``, ``∞``."""
    return "∞" if math.isinf(order) else f"{order:g}"
