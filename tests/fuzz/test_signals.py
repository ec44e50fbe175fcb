"""A few kills of each kind; BICLIQUE_FUZZ=1000 makes it a long campaign."""

import os

import pytest

from tests.fuzz import signals

LONG = int(os.environ.get("BICLIQUE_FUZZ", "0"))
COMMANDS = signals.COMMANDS if LONG else {"convert": signals.COMMANDS["convert"]}
WAYS = tuple(signals.ways()) if LONG else ("neighborhoods",)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    signals.make_inputs(folder)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("number", signals.SIGNALS if LONG else signals.SIGNALS[:1], ids=lambda number: number.name)
def test_commands_that_are_killed(name, number, inputs):
    failures = signals.kill_many(name, number, LONG // 20 or 2, 0, inputs)
    assert not failures, "\n".join(failures[:5])


@pytest.mark.parametrize("way", WAYS)
def test_fits_that_are_interrupted(way):
    signals.interrupt_many(way, LONG // 50 or 2, seed=0, longest=None if LONG else 0.3)
