"""A fitted model as a page to send, and in words."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from biclique.cluster.trust import HowSure
from biclique.exceptions import ParameterError
from biclique.progress import Progress
from biclique.runtime.threads import single_threaded_blas

if TYPE_CHECKING:  # reports and tables are imported when they are used: a fit needs neither
    from biclique.report.gather import Ids
    from biclique.report.rows import Subject
    from biclique.report.summary import Summary


class Reporting(HowSure):
    """``report`` and ``summary`` of a fitted clusterer."""

    def report(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        table: Any = None,
        used: Collection[str] | None = None,
        ids: Ids | None = None,
        title: str | None = None,
        command: str | None = None,
        notes: Sequence[str] = (),
        n_splits: int = 10,
    ) -> None:
        """Write one self-contained HTML page about the clusters, to look at and to send.

        The page needs no network and is at most 3 MB: at most 20,000 rows are drawn, of every cluster at least
        200 or all. What takes fits (stability, other orders, similarities) is done on at most 1,000 rows.
        ``docs/report.md`` shows a page.

        Parameters
        ----------
        X : as in ``predict``
            The rows of ``fit``, or others. Chunk sources work if ``predict`` takes them.
        path : str or path
            The file to write, such as "report.html".
        table : frame or array, optional
            Columns to show instead of those of X: the same rows before they were scaled or encoded. Columns of
            text are shown too.
        used : list of names, optional
            The columns of ``table`` from which the clusters were made; the page marks the others. By default the
            names of the columns of ``fit``, if it had names.
        ids : sequence or function, optional
            The names of the rows. If they are not in memory: a function that takes row numbers (at most 20,000,
            ascending) and returns the names of these rows. By default rows are called by their numbers, counted
            from 0.
        title : str, optional
        command : str, optional
            How to repeat this; by default a line of Python.
        notes : sequence of str, optional
            Warnings to put on the page.
        n_splits : int, default 10
            Halves of the rows by which stability is measured; 0 leaves stability out.
        """
        from biclique.report.gather import gather
        from biclique.report.page import make_page
        from biclique.tables.atomic_files import check_target, write_text

        check_is_fitted(self)
        if isinstance(n_splits, bool) or not isinstance(n_splits, (int, np.integer)) or n_splits < 0:
            raise ParameterError(f"n_splits must be a whole number from 0, got {n_splits!r}: 0 leaves stability out.")
        check_target(path)
        with single_threaded_blas(), Progress.of(self.verbose) as progress:
            data = gather(self._subject(), X, progress, table, used, ids, title, command, notes, int(n_splits))
        write_text(path, make_page(data))

    def summary(self) -> Summary:
        """What the fit chose, and why: text when printed, a table in a notebook."""
        from biclique.report.summary import summary_of

        check_is_fitted(self)
        subject, sizes = self._subject(), getattr(self, "_lazy_sizes", None)
        if sizes is None and hasattr(self, "labels_"):
            sizes = np.bincount(self.labels_, minlength=subject.n_clusters).tolist()
        return summary_of(subject, sizes)

    def _subject(self) -> Subject:
        from biclique.report.rows import Subject

        known, parameters = signature(type(self)).parameters, self.get_params(deep=False)
        changed = {name: value for name, value in parameters.items() if repr(value) != repr(known[name].default)}
        return Subject(
            type(self).__name__,
            {"n_clusters": self.n_clusters, **changed},
            self._fitted,
            self._n_found(),
            getattr(self, "feature_names_in_", None),
            self._of_rows,
            self._stability,
            getattr(self, "k_selection_", None),
            self.n_jobs,
        )
