"""Damage to files: what a broken disk, a bad download, another program or an attacker may have done to them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Files = dict[str, bytes]
"""A file, or all files of a folder, by their names in it."""

TELLING = [
    b"\0",
    b"\xff",
    b"\x80",
    b"\n",
    b"\r",
    b'"',
    b",",
    b";",
    b"\t",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"-",
    b"\x1b[2J",
]
NUMBERS = [
    b"0",
    b"-1",
    b"1e308",
    b"1e999",
    b"nan",
    b"-inf",
    b"9" * 18,
    b"9" * 400,
    b"1_2",
    b"0x10",
    b"2147483648",
    b"1e-320",
]
WHOLE = re.compile(rb"[0-9]+")


def mutate(files: Files, others: list[Files], draw: random.Random) -> Files:
    """A copy with one to four kinds of damage, all in one of its files."""
    name = draw.choice(sorted(files))
    content = files[name]
    donor = draw.choice(others)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        content = draw.choice(DAMAGE)(content, draw.choice(sorted(donor.values())), draw)
    return {**files, name: content}


def _place(content: bytes, draw: random.Random) -> tuple[int, int]:
    """A slice: often near the beginning, where headers are, often short."""
    start = draw.randrange(len(content) + 1)
    if draw.random() < 0.5:
        start = min(start, draw.randrange(200))
    return start, min(start + draw.choice([1, 1, 2, 4, 8, 64, 1000]), len(content))


def _flip(content: bytes, other: bytes, draw: random.Random) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 3, 30])):
        changed[min(_place(content, draw)[0], len(content) - 1)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(content: bytes, other: bytes, draw: random.Random) -> bytes:
    start, stop = _place(content, draw)
    return content[:start] + content[stop:]


def _shorten(content: bytes, other: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _repeat(content: bytes, other: bytes, draw: random.Random) -> bytes:
    start, stop = _place(content, draw)
    return content[:stop] + content[start:stop] * draw.choice([1, 1, 2, 50]) + content[stop:]


def _insert(content: bytes, other: bytes, draw: random.Random) -> bytes:
    start, _ = _place(content, draw)
    what = draw.choice(TELLING) * draw.choice([1, 1, 3, 100]) if draw.random() < 0.7 else draw.randbytes(8)
    return content[:start] + what + content[start:]


def _number(content: bytes, other: bytes, draw: random.Random) -> bytes:
    """Another number where one stands."""
    found = list(WHOLE.finditer(content, 0, 5000))
    if not found:
        return _insert(content, other, draw)
    at = draw.choice(found)
    return content[: at.start()] + draw.choice(NUMBERS) + content[at.end() :]


def _swap(content: bytes, other: bytes, draw: random.Random) -> bytes:
    """A piece of another file of the kind."""
    start, stop = _place(content, draw)
    first, last = _place(other, draw)
    return content[:start] + other[first:last] + content[stop:]


DAMAGE: list[Callable[[bytes, bytes, random.Random], bytes]] = [
    _flip,
    _flip,
    _cut,
    _shorten,
    _repeat,
    _insert,
    _number,
    _number,
    _swap,
]
