"""What tests ask of a call: the error that it raises, or the memory that it takes."""

import tracemalloc

import pytest


def refuses(error, message, call, /, *arguments, **options):
    """A call raises this error, with a message that matches."""
    with pytest.raises(error, match=message):
        call(*arguments, **options)


def refusals(*cases):
    """A test of calls: each raises its error, with a message that matches."""

    @pytest.mark.parametrize(("call", "error", "message"), cases)
    def test(call, error, message):
        refuses(error, message, call)

    return test


def peak_memory(call):
    """The peak of memory during a call, and what it returned."""
    tracemalloc.start()
    try:
        returned = call()
        return tracemalloc.get_traced_memory()[1], returned
    finally:
        tracemalloc.stop()
