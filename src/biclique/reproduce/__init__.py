"""The paper's tables and figures, as resumable runs."""

from biclique.reproduce.cells import FULL, QUICK, Cell, Records, current_commit, plan, run_cells
from biclique.reproduce.everything import TARGETS, publish, reproduce, write
from biclique.reproduce.methods import METHODS, Problem, Settings

__all__ = [
    "FULL",
    "METHODS",
    "QUICK",
    "TARGETS",
    "Cell",
    "Problem",
    "Records",
    "Settings",
    "current_commit",
    "plan",
    "publish",
    "reproduce",
    "run_cells",
    "write",
]
