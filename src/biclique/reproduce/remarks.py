"""What is known about cells that differ from the paper by more than 0.02, and what the page says before its tables."""

from __future__ import annotations

LARGE = 0.02

REMARKS: dict[tuple[str, str], str] = {}
"""(row, data set, or "" for every one) → a sentence."""

FINDINGS: list[str] = []
"""Paragraphs of the page."""
