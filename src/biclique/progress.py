"""The one place that shows progress: a line on standard error, or nothing at all."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import TextIO

REFRESH_SECONDS = 0.1
WIDTH = 20


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


def _bar(share: float) -> str:
    filled = round(WIDTH * min(share, 1.0))
    return f"[{'#' * filled}{'.' * (WIDTH - filled)}]"


class Progress:
    """A bar with passes, residual and time left.

    On a terminal one line is redrawn; elsewhere one line is written a pass. Disabled, it does nothing.
    """

    def __init__(self, enabled: bool = False, stream: TextIO | None = None) -> None:
        self.enabled = enabled
        self.stream = stream if stream is not None else sys.stderr
        self._redraws = enabled and self.stream.isatty()
        self._drawn = 0
        self._last_draw = 0.0
        self._start = time.perf_counter()
        self._passes = 0
        self._expected = 5.0
        self._residual = math.nan
        self._target = math.nan
        self._next_line = 0.0
        self._what = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wipe()

    def say(self, text: str) -> None:
        """One line that stays."""
        if self.enabled:
            self._wipe()
            self.stream.write(f"biclique: {text}\n")
            self.stream.flush()

    def tick(self, share: float) -> None:
        """The share of the current pass that is done."""
        if self._redraws and time.perf_counter() - self._last_draw >= REFRESH_SECONDS:
            self._draw(share)

    def share(self, what: str, share: float, detail: str = "") -> None:
        """The share of some work that is done: redrawn on a terminal, a line for every tenth elsewhere."""
        if not self.enabled:
            return
        now = time.perf_counter()
        if what != self._what:  # another piece of work: its time counts from here
            self._what, self._start, self._next_line = what, now, 0.0
        if self._redraws:
            if now - self._last_draw >= REFRESH_SECONDS or share >= 1:
                self._show(f"biclique: {self._share_text(what, share, detail)}")
        elif share >= self._next_line:
            self._next_line = math.floor(10 * share + 1e-9) / 10 + 0.1
            self.stream.write(f"biclique: {self._share_text(what, share, detail)}\n")
            self.stream.flush()

    def _share_text(self, what: str, share: float, detail: str) -> str:
        elapsed = time.perf_counter() - self._start
        parts = [_bar(share), f"{what} {share:.0%}"]
        if detail:
            parts.append(detail)
        if 0 < share < 1:
            parts.append(f"{format_seconds(elapsed * (1 - share) / share)} left")
        elif share >= 1:
            parts.append(format_seconds(elapsed))
        return "  ".join(parts)

    def passed(self, passes: int, residual: float, target: float) -> None:
        """A pass has ended with this worst residual; the work ends when it is at most the target."""
        if not self.enabled:
            return
        self._expected = self._forecast(passes, residual, target)
        self._passes, self._residual, self._target = passes, residual, target
        if self._redraws:
            self._draw(0.0)
        else:
            self.stream.write(f"biclique: {self._text(0.0)}\n")
            self.stream.flush()

    def _forecast(self, passes: int, residual: float, target: float) -> float:
        """How many passes there will be, if residuals go on shrinking as they did."""
        if residual <= target:
            return passes
        shrink = self._residual / residual if residual > 0 else math.inf
        if not (math.isfinite(shrink) and shrink > 1.05):
            return max(self._expected, passes + 2.0)
        return passes + max(1.0, math.log(residual / target) / math.log(shrink))

    def _text(self, share: float) -> str:
        done = min((self._passes + share) / max(self._expected, 1.0), 1.0)
        elapsed = time.perf_counter() - self._start
        parts = [_bar(done), f"pass {self._passes + (share > 0)}"]
        if math.isfinite(self._residual):
            parts.append(f"residual {self._residual:.1e} (target {self._target:.1e})")
        if done > 0:
            parts.append(f"{format_seconds(elapsed * (1 - done) / done)} left" if done < 1 else format_seconds(elapsed))
        return "  ".join(parts)

    def _draw(self, share: float) -> None:
        self._show(f"biclique: {self._text(share)}")

    def _show(self, text: str) -> None:
        self.stream.write("\r" + text.ljust(self._drawn))
        self.stream.flush()
        self._drawn = len(text)
        self._last_draw = time.perf_counter()

    def _wipe(self) -> None:
        if self._drawn:
            self.stream.write("\r" + " " * self._drawn + "\r")
            self.stream.flush()
            self._drawn = 0
