"""The one place that shows progress: a line on standard error by tqdm, or nothing at all."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, ClassVar, Self, TextIO

PLAIN_SECONDS = 10
"""``verbose`` of the command line: seconds between two lines if standard error is not a terminal."""

FIRST_GUESS = 5.0
"""Passes that are expected before residuals tell more."""

LINE = "biclique: {desc} |{bar}|"
"""The line that is redrawn; tqdm fits its bar to the terminal."""


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


class Progress:
    """A bar with passes, residual and time left.

    On a terminal and in a notebook one line is redrawn. Elsewhere one line is written a pass; with ``every``, one in
    so many seconds. Disabled, it does nothing.
    """

    _last_line: ClassVar[float] = -math.inf
    """When the last line that stays was written, by any work of this process."""

    def __init__(self, enabled: bool = False, stream: TextIO | None = None, every: float = 0.0) -> None:
        self.enabled = enabled
        self.stream = stream if stream is not None else sys.stderr
        self._redraws = enabled and (self.stream.isatty() or "ipykernel" in sys.modules)
        self._every = every
        self._bar: Any = None
        self._what = ""
        self._start = time.perf_counter()
        self._next_share = 0.0
        self._passes = 0
        self._expected = FIRST_GUESS
        self._residual = self._target = math.nan

    @classmethod
    def of(cls, verbose: float) -> Self:
        """What an estimator's ``verbose`` asks for: 1 is a line a pass, more is a line in so many seconds."""
        return cls(bool(verbose), every=float(verbose) if verbose > 1 else 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def say(self, text: str) -> None:
        """One line that stays, unless the last one is too near."""
        if self.enabled and self._line_is_due():
            self.note(text)

    def note(self, text: str) -> None:
        """One line that stays."""
        if not self.enabled:
            return
        Progress._last_line = time.perf_counter()
        if self._bar is not None:
            self._bar.clear()
        self.stream.write(f"biclique: {text}\n")
        self.stream.flush()

    def share(self, what: str, share: float, detail: str = "") -> None:
        """The share of some work that is done: redrawn on a terminal, a line for every tenth elsewhere."""
        if not self.enabled:
            return
        if what != self._what:
            self._what = what
            self._start = time.perf_counter()
            self._next_share = 0.0
        if self._is_time() or share >= self._next_share:
            self._next_share = math.floor(10 * share + 1e-9) / 10 + 0.1
            self._show(what, share, detail)

    def tick(self, share: float) -> None:
        """The share of the current pass that is done."""
        if self._is_time():
            self._show_passes(share)

    def passed(self, passes: int, residual: float, target: float) -> None:
        """A pass has ended with this worst residual; the work ends when it is at most the target."""
        if not self.enabled:
            return
        self._expected = self._forecast(passes, residual, target)
        self._passes, self._residual, self._target = passes, residual, target
        self._show_passes(0.0)

    def _forecast(self, passes: int, residual: float, target: float) -> float:
        """How many passes there will be, if residuals go on shrinking as they did."""
        if residual <= target:
            return passes
        shrink = self._residual / residual if residual > 0 else math.inf
        if not (math.isfinite(shrink) and shrink > 1.05):
            return max(self._expected, passes + 2.0)
        return passes + max(1.0, math.log(residual / target) / math.log(shrink))

    def _show_passes(self, share: float) -> None:
        done = min((self._passes + share) / max(self._expected, 1.0), 1.0)
        known = math.isfinite(self._residual)
        detail = f"residual {self._residual:.1e} (target {self._target:.1e})" if known else ""
        self._show(f"pass {self._passes + (share > 0)}", done, detail)

    def _is_time(self) -> bool:
        """Whether what is shown is old enough to be shown anew: always, if it is one line that is redrawn."""
        return self._redraws or (bool(self._every) and self._line_is_due())

    def _line_is_due(self) -> bool:
        return self._redraws or time.perf_counter() - Progress._last_line >= self._every

    def _show(self, what: str, share: float, detail: str) -> None:
        elapsed = time.perf_counter() - self._start
        left = f"{format_seconds(elapsed * (1 - share) / share)} left" if 0 < share < 1 else format_seconds(elapsed)
        text = "  ".join(part for part in (f"{what} {share:.0%}", left, detail) if part)
        if self._redraws:
            self._draw(text, min(share, 1.0))
        else:
            self.say(text)

    def _draw(self, text: str, share: float) -> None:
        if self._bar is None:
            from tqdm.auto import tqdm

            shown = {"total": 1.0, "initial": share, "desc": text, "bar_format": LINE}
            self._bar = tqdm(file=self.stream, leave=False, dynamic_ncols=True, **shown)
        self._bar.n = share
        self._bar.set_description_str(text)


def start_clock() -> None:
    """Work begins now: the first plain line comes when it has taken as long as two lines are apart."""
    Progress._last_line = time.perf_counter()
