"""What the script of a page draws: bytes as base64, and short texts."""

from __future__ import annotations

import base64
import math
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
"""Characters of an id or of a column's name that are kept: 20,000 ids must not fill the page."""

LEVEL = 24
"""Characters of a level that are kept: 30 × 255 levels must not fill the page."""

ID_BYTES = 500_000
"""Bytes that all ids may take in the page."""

LEVEL_BYTES = 150_000
"""Bytes that all levels may take in the page."""

LONGEST_ID = 200
"""Characters of an id that is kept whole."""


def map_data(data: ReportData) -> dict[str, Any]:
    """What the script draws: bytes as base64, and short texts."""
    drawn, facts = data.drawn, data.facts
    categories = [one for one in data.columns if one.means is None]
    levels = iter(_within([str(level) for one in categories for level in one.coded.values], LEVEL, LEVEL_BYTES) or [])
    labels = facts.labels[drawn].astype("<u2")
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
        **_ids(data.ids),
        "views": [_view(view) for view in data.views],
        "columns": [
            {
                "name": shown(one.name, NAMED),
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
    path, similarities = data.sampled.path, data.sampled.similarities
    if path is not None:
        found["path"] = {
            "orders": [order_text(order) for order in path.orders],
            "own": path.own,
            "places": _packed(data.places.astype("<u4")),
            "labels": [_packed(one.astype("<u2")) for one in path.labels],
        }
    if similarities is not None:
        cells, clusters = similarities.cells, similarities.clusters.tolist()
        found["matrix"] = {"size": len(cells), "cells": _packed(_darkness(cells)), "clusters": clusters}
    return found


def _packed(values: np.ndarray) -> str:
    """Bytes as text."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _ids(ids: list[str] | None) -> dict[str, Any]:
    """Ids as they are if that is short and safe to show; else cut, and row numbers are copied in their place."""
    if ids is None:
        return {"ids": None, "exactIds": False}
    if _bytes_of(ids) <= ID_BYTES and all(shown(name, LONGEST_ID) == name for name in ids):
        return {"ids": ids, "exactIds": True}
    return {"ids": _within(ids, NAMED, ID_BYTES), "exactIds": False}


def _within(texts: list[str], most: int, room: int) -> list[str] | None:
    """Texts cut to ``most`` characters, or to a half or a quarter of that if they take more than ``room`` bytes."""
    for length in (most, most // 2, most // 4):
        cut = [shown(text, length) for text in texts]
        if _bytes_of(cut) <= room:
            return cut
    return None


def _bytes_of(texts: list[str]) -> int:
    """In the page, where some characters take six bytes."""
    return len(json_text({"": texts}).encode("utf-8", "replace"))


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
