"""What the script of a page draws: bytes as base64, and short texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from biclique.report.charts import COLOURS, SHAPES
from biclique.report.gather import ReportData, View
from biclique.report.markup import json_text, shown
from biclique.report.shown_columns import as_base64

NAMED = 40
"""Characters of an id that are kept: 20,000 ids must not fill the page."""

LEVEL = 24
"""Characters of a level that are kept: 30 × 255 levels must not fill the page."""

LEVELS_TEXT = 60
"""Characters of a column's name."""

ID_BYTES = 500_000
"""Bytes that all ids may take in the page."""

LEVEL_BYTES = 300_000
"""Bytes that all levels may take in the page."""

LONGEST_ID = 200
"""Characters of an id that is kept whole."""


def map_data(data: ReportData) -> dict[str, Any]:
    """What the script draws: bytes as base64, and short texts."""
    path, similarities = data.sampled.path, data.sampled.similarities
    levels = iter(_levels([one.coded.values for one in data.columns if one.is_category]))
    return {
        "n": len(data.drawn),
        "clusters": data.subject.n_clusters,
        "colours": COLOURS,
        "shapes": SHAPES,
        "rows": as_base64(data.drawn.astype("<u4")),
        "labels": as_base64(data.facts.labels[data.drawn].astype("<u2")),
        "sure": as_base64(np.round(255 * data.facts.best[data.drawn]).astype(np.uint8)),
        "nowhere": as_base64(data.facts.nowhere[data.drawn].astype(np.uint8)),
        "all": data.n_rows,
        **_ids(data.ids),
        "views": [
            {"name": view.name, "axes": [shown(name, NAMED) for name in view.axes], **_places(view)}
            for view in data.views
        ],
        "columns": [
            {
                "name": shown(one.name, LEVELS_TEXT),
                "codes": as_base64(one.coded.codes),
                "values": next(levels) if one.is_category else one.coded.values,
                "exact": one.coded.exact,
                "category": one.is_category,
            }
            for one in data.columns
        ],
        "path": None
        if path is None
        else {
            "orders": [order_text(order) for order in path.orders],
            "own": path.orders.index(data.subject.fitted.chosen.order),
            "places": as_base64(data.places.astype("<u4")),
            "labels": [as_base64(labels.astype("<u2")) for labels in path.labels],
        },
        "matrix": None
        if similarities is None
        else {
            "size": len(similarities.cells),
            "cells": as_base64(_bytes(similarities.cells)),
            "clusters": similarities.clusters.tolist(),
        },
    }


def _ids(ids: list[str] | None) -> dict[str, Any]:
    """Ids as they are if that is short and safe to show; else cut, and row numbers are copied in their place."""
    if ids is None:
        return {"ids": None, "exactIds": False}
    if _bytes_of(ids) <= ID_BYTES and all(shown(name, LONGEST_ID) == name for name in ids):
        return {"ids": ids, "exactIds": True}
    return {"ids": _within(ids, NAMED, ID_BYTES), "exactIds": False}


def _levels(columns: Sequence[Sequence[object]]) -> list[list[str]]:
    """The levels of all categories, cut alike."""
    texts = iter(_within([str(level) for column in columns for level in column], LEVEL, LEVEL_BYTES) or [])
    return [list(islice(texts, len(column))) for column in columns]


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


def _places(view: View) -> dict[str, str | float | bool]:
    """Coordinates from 0 to 65,535, on one scale if the view is even, and the room that they take, at most 1."""
    low, high = view.places.min(axis=0), view.places.max(axis=0)
    spans = high - low if not view.even else np.full(2, (high - low).max())
    spans = np.where(spans > 0, spans, 1.0)
    scaled = np.round((view.places - low) / spans * 65_535).astype("<u2")
    wide, tall = np.where(high > low, (high - low) / spans, 0.0).tolist()
    x, y = as_base64(scaled[:, 0]), as_base64(scaled[:, 1])
    return {"x": x, "y": y, "wide": wide, "tall": tall, "even": view.even}


def _bytes(cells: np.ndarray) -> np.ndarray:
    """From 0 to 255: the 99th percentile of what is off the diagonal, and more, is darkest."""
    off = cells[~np.eye(len(cells), dtype=bool)]
    low = min(float(cells.min()), 0.0)
    high = float(np.quantile(off, 0.99)) if len(off) else 1.0
    high = high if high > low else float(cells.max())
    return np.round(255 * np.clip((cells - low) / ((high - low) or 1.0), 0.0, 1.0)).astype(np.uint8)


def order_text(order: float) -> str:
    """``2.1``, ``∞``."""
    return "∞" if math.isinf(order) else f"{order:g}"
