"""Fitted models as files."""

from biclique.models.saving import Saved, load, load_with_notes, save

__all__ = ["Saved", "load", "load_with_notes", "save"]
