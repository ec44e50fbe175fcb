"""Ctrl-C, SIGTERM and SIGHUP as one kind of exception."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

WORDS = {
    number: word
    for name, word in (("SIGINT", "interrupted"), ("SIGTERM", "terminated"), ("SIGHUP", "hung up"))
    if (number := getattr(signal, name, None)) is not None  # Windows has no SIGHUP
}
SAME_SECONDS = 0.5
"""A second signal within this time is the first one again: ``timeout`` sends two, and impatient people more."""
AGAIN_SECONDS = 0.05


class Stop(KeyboardInterrupt):
    """The process was asked to end. A KeyboardInterrupt, because all code knows what to do with those."""


class _State:
    def __init__(self) -> None:
        self.listening = False
        self.number: int | None = None
        """The signal that came."""
        self.when = 0.0
        self.hook = sys.unraisablehook


_state = _State()


def came() -> int | None:
    """The signal that has asked us to end."""
    return _state.number


def listen_no_more() -> None:
    """Signals do nothing from now on: the work is over, and what is left is quick."""
    _state.listening = False


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    now = time.monotonic()
    if not _state.listening or (_state.number is not None and now - _state.when < SAME_SECONDS):
        return
    _state.number, _state.when = number, now
    raise Stop


def _repeat(unraisable: Any) -> None:
    """Python drops an exception that falls into a finaliser: ask again a little later."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        if _state.number is None:  # after a signal, these are the ruins of the work that was left
            _state.hook(unraisable)
    elif _state.listening and _state.number is not None:
        number, _state.when = _state.number, 0.0
        timer = threading.Timer(AGAIN_SECONDS, _tell_main_thread, (number,))
        timer.daemon = True
        timer.start()


def _tell_main_thread(number: int) -> None:
    """Send ourselves a signal. To the main thread if that is possible: it may be waiting, and is woken then."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


def listen() -> dict[int, Any]:
    """Raise Stop at any of the signals, and return the handlers before. What is ignored stays so: nohup means it."""
    _state.number = None
    if threading.current_thread() is not threading.main_thread():
        return {}
    before = {number: signal.getsignal(number) for number in WORDS}
    _state.listening, _state.hook = True, sys.unraisablehook
    sys.unraisablehook = _repeat
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    return before


def restore(before: dict[int, Any]) -> None:
    """The end of ``listen``, for a process that goes on."""
    _state.listening = False
    if before:
        sys.unraisablehook = _state.hook
    for number, handler in before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


def ignore() -> None:
    """The end of ``listen``, for a process that ends: Python would take our handlers away before it is over."""
    _state.listening = False
    for number in WORDS:
        signal.signal(number, signal.SIG_IGN)
