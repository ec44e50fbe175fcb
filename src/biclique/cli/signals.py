"""Ctrl-C, SIGTERM and SIGHUP as one kind of exception."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

NAMES = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
WORDS = {getattr(signal, name): word for name, word in NAMES.items() if hasattr(signal, name)}
"""By the number of the signal; Windows has no SIGHUP."""
SAME_SECONDS = 0.5
"""A second signal within this time is the first one again: ``timeout`` sends two, and impatient people more."""
AGAIN_SECONDS = 0.05
"""Until a signal whose exception was dropped is sent again."""


class Stop(KeyboardInterrupt):
    """The process was asked to end. A KeyboardInterrupt, because all code knows what to do with those."""


class Heard:
    """Whether signals are listened to, which one came, and when."""

    listening = False
    number: int | None = None
    when = 0.0


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    now = time.monotonic()
    if Heard.listening and (Heard.number is None or now - Heard.when >= SAME_SECONDS):
        Heard.number, Heard.when = number, now
        raise Stop


def _repeat(unraisable: Any) -> None:
    """Python drops an exception that falls into a finaliser: send the signal again a little later.

    It goes to the main thread if that is possible, which may be waiting, and is woken then.
    """
    if Heard.number is None:
        sys.__unraisablehook__(unraisable)
    elif Heard.listening and issubclass(unraisable.exc_type, KeyboardInterrupt):
        Heard.when = 0.0
        main, number = threading.main_thread().ident or 0, Heard.number
        send = signal.pthread_kill if hasattr(signal, "pthread_kill") else lambda _, number: signal.raise_signal(number)
        timer = threading.Timer(AGAIN_SECONDS, send, (main, number))
        timer.daemon = True
        timer.start()


@contextmanager
def listening(*, alone: bool) -> Iterator[None]:
    """Raise Stop at any of the signals. What is ignored stays so: nohup means it.

    ``alone``: the process ends afterwards, and ignores them from then on.
    """
    Heard.number = None
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in WORDS}
    hook, sys.unraisablehook = sys.unraisablehook, _repeat
    Heard.listening = True
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        Heard.listening = False
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if alone else handler or signal.SIG_DFL)
        if not alone:
            sys.unraisablehook = hook
