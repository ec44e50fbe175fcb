"""Threads, memory limits, array namespaces, checks of arguments."""

from biclique.runtime.arguments import (
    MOST_STARTS,
    Names,
    all_finite,
    check_choice,
    check_count,
    check_flag,
    check_jobs,
    check_number,
    check_random,
    is_finite,
)
from biclique.runtime.draws import draw_by_permutation, draw_numbers
from biclique.runtime.memory import data_bytes, format_bytes, free_memory, parse_memory_limit, require
from biclique.runtime.threads import (
    PANEL,
    Pulse,
    Result,
    Tick,
    count_threads,
    given_panel,
    panel_product,
    run_groups,
    run_panels,
    single_threaded_blas,
)

__all__ = [
    "MOST_STARTS",
    "PANEL",
    "Names",
    "Pulse",
    "Result",
    "Tick",
    "all_finite",
    "check_choice",
    "check_count",
    "check_flag",
    "check_jobs",
    "check_number",
    "check_random",
    "count_threads",
    "data_bytes",
    "draw_by_permutation",
    "draw_numbers",
    "format_bytes",
    "free_memory",
    "given_panel",
    "is_finite",
    "panel_product",
    "parse_memory_limit",
    "require",
    "run_groups",
    "run_panels",
    "single_threaded_blas",
]
