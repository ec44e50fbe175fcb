"""The one place that shows progress: a line on standard error, or nothing at all."""

from __future__ import annotations

import math
import os
import sys
import time
from types import TracebackType
from typing import TextIO

REFRESH_SECONDS = 0.1
BARS = (20, 10, 0)
"""Widths of the bar: the longest that fits the terminal."""
USUAL_COLUMNS = 80
"""Of a terminal that does not say how wide it is."""
PLAIN_SECONDS = 10
"""``verbose`` of the command line: seconds between two lines if standard error is not a terminal."""


def format_seconds(seconds: float) -> str:
    """``0.4 s``, ``36 s``, ``4 min 10 s``, ``2 h 5 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _bar(share: float, width: int) -> str:
    filled = round(width * min(share, 1.0))
    return f"[{'#' * filled}{'.' * (width - filled)}]"


class _Clock:
    """When the last plain line was written: one for all work of a process."""

    last = -math.inf


clock = _Clock()


def start_clock() -> None:
    """Work begins now: the first plain line comes when it has taken as long as two lines are apart."""
    clock.last = time.perf_counter()


class Progress:
    """A bar with passes, residual and time left.

    On a terminal one line is redrawn, never wider than the terminal. Elsewhere one line is written a pass; with
    ``every``, one in so many seconds. Disabled, it does nothing.
    """

    def __init__(self, enabled: bool = False, stream: TextIO | None = None, every: float = 0.0) -> None:
        self.enabled = enabled
        self.stream = stream if stream is not None else sys.stderr
        self._redraws = enabled and self.stream.isatty()
        self._every = every
        self._drawn = 0
        self._last_draw = 0.0
        self._start = time.perf_counter()
        self._passes = 0
        self._expected = 5.0
        self._residual = math.nan
        self._target = math.nan
        self._next_line = 0.0
        self._what = ""

    @classmethod
    def of(cls, verbose: float) -> Progress:
        """What an estimator's ``verbose`` asks for: 1 is a line a pass, more is a line in so many seconds."""
        return cls(bool(verbose), every=float(verbose) if verbose > 1 else 0.0)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wipe()

    def say(self, text: str) -> None:
        """One line that stays, unless the last one is too near."""
        if self.enabled:
            self._wipe()
            self._plain(text)

    def note(self, text: str) -> None:
        """One line that stays."""
        if self.enabled:
            self._wipe()
            clock.last = -math.inf
            self._plain(text)

    def tick(self, share: float) -> None:
        """The share of the current pass that is done."""
        if self._is_time():
            self._tell(self._text(share))

    def share(self, what: str, share: float, detail: str = "") -> None:
        """The share of some work that is done: redrawn on a terminal, a line for every tenth elsewhere."""
        if not self.enabled:
            return
        now = time.perf_counter()
        if what != self._what:  # another piece of work: its time counts from here
            self._what, self._start, self._next_line = what, now, 0.0
        if self._is_time() or share >= (1 if self._redraws else self._next_line):
            self._next_line = math.floor(10 * share + 1e-9) / 10 + 0.1
            self._tell((share, f"{what} {share:.0%}", detail, self._left(share)))

    def _left(self, share: float) -> str:
        """The time left if this share is done, or the time that all of it took."""
        elapsed = time.perf_counter() - self._start
        if share >= 1:
            return format_seconds(elapsed)
        return f"{format_seconds(elapsed * (1 - share) / share)} left" if share > 0 else ""

    def passed(self, passes: int, residual: float, target: float) -> None:
        """A pass has ended with this worst residual; the work ends when it is at most the target."""
        if not self.enabled:
            return
        self._expected = self._forecast(passes, residual, target)
        self._passes, self._residual, self._target = passes, residual, target
        self._tell(self._text(0.0))

    def _forecast(self, passes: int, residual: float, target: float) -> float:
        """How many passes there will be, if residuals go on shrinking as they did."""
        if residual <= target:
            return passes
        shrink = self._residual / residual if residual > 0 else math.inf
        if not (math.isfinite(shrink) and shrink > 1.05):
            return max(self._expected, passes + 2.0)
        return passes + max(1.0, math.log(residual / target) / math.log(shrink))

    def _text(self, share: float) -> _Parts:
        done = min((self._passes + share) / max(self._expected, 1.0), 1.0)
        known = math.isfinite(self._residual)
        detail = f"residual {self._residual:.1e} (target {self._target:.1e})" if known else ""
        return done, f"pass {self._passes + (share > 0)}", detail, self._left(done)

    def _is_time(self) -> bool:
        """Whether what is shown is old enough to be shown anew."""
        if self._redraws:
            return time.perf_counter() - self._last_draw >= REFRESH_SECONDS
        return bool(self._every) and self._due()

    def _tell(self, parts: _Parts) -> None:
        if self._redraws:
            self._show(parts)
        else:
            share, *texts = parts
            self._plain("  ".join(part for part in (_bar(share, BARS[0]), *texts) if part))

    # Lines that stay

    def _due(self) -> bool:
        return time.perf_counter() - clock.last >= self._every

    def _plain(self, text: str) -> None:
        """A line, unless the last one is too near."""
        if self._redraws or not self._every or self._due():
            clock.last = time.perf_counter()
            self.stream.write(f"biclique: {text}\n")
            self.stream.flush()

    # The line that is redrawn

    def _columns(self) -> int:
        """Of the terminal, asked every time: windows change."""
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or USUAL_COLUMNS
        except (OSError, ValueError, AttributeError):
            return USUAL_COLUMNS

    def _show(self, parts: _Parts) -> None:
        # One column stays free: a line that ends in the last one makes some terminals scroll.
        most = max(self._columns() - 1, 1)
        text = fitted_line(parts, most)
        self.stream.write("\r" + text.ljust(min(self._drawn, most)))
        self.stream.flush()
        self._drawn = len(text)
        self._last_draw = time.perf_counter()

    def _wipe(self) -> None:
        if self._drawn:
            self.stream.write("\r" + " " * min(self._drawn, max(self._columns() - 1, 1)) + "\r")
            self.stream.flush()
            self._drawn = 0


_Parts = tuple[float, str, str, str]
"""The share that is done, of what, a detail, and the time left."""


def fitted_line(parts: _Parts, most: int) -> str:
    """As much as fits into so many columns: first the bar is shortened, then the detail left out, then the name."""
    share, what, detail, left = parts
    for some in (detail, ""):
        for width in BARS:
            bar = _bar(share, width) if width else ""
            text = "biclique: " + "  ".join(part for part in (bar, what, some, left) if part)
            if len(text) <= most:
                return text
    short = "  ".join(part for part in (what, left) if part)
    return short[:most]
