"""Damage to files: what a broken disk, a bad download, another program or an attacker may have done to them."""

import json
import re
import zipfile
from io import BytesIO

import numpy as np

KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
"""Every compression that an archive may have."""

KINDS_OF_DAMAGE = ("flip", "flip", "cut", "shorten", "repeat", "insert", "number", "number", "swap")
TELLING = [*(bytes([byte]) for byte in b'\0\xff\x80\n\r",;\t{}[]\\-'), b"\x1b[2J"]
NUMBERS = b"0 -1 1e308 1e999 nan -inf".split() + [b"9" * 18, b"9" * 400] + b"1_2 0x10 2147483648 1e-320".split()
WHOLE = re.compile(rb"[0-9]+")
SCALARS = [None, True, 0, -1, 1, 7, 2**31, 10**12, 10**30, 10**400, 0.5, 1e308, float("nan"), float("inf")]
TEXTS = ["", "NaN", "pickle", "|O", "\x1b", "a\n\x1b[2J", "\ud800"]
VALUES = [*SCALARS, *TEXTS, [], [0, 3], {}, [[]], {"weight": "1"}]
"""What another program may write where a value stands."""


def npy_bytes(array):
    stream = BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def zipped(members, compression=zipfile.ZIP_STORED):
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def members_of(content):
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def mutate(files, others, draw):
    """A copy with one to four kinds of damage, all in one of its files."""
    name = draw.choice(sorted(files))
    content = files[name]
    donor = draw.choice(others)
    other = draw.choice(sorted(donor.values()))
    if draw.random() < 0.6:  # damage that checksums and parsers do not stop
        packed = _inside_zip(content, draw)
        content = packed if packed is not None else _in_json(content, draw) or content
    if content is files[name]:
        content = damaged(content, other, draw)
    return {**files, name: content}


def damaged(content, other, draw):
    """One to four pieces are replaced by what ``_replacement`` makes of them."""
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        kind = draw.choice(KINDS_OF_DAMAGE)
        start, stop = _place(content, draw)
        numbers = list(WHOLE.finditer(content, 0, 5000)) if kind == "number" else []
        if numbers:
            start, stop = draw.choice(numbers).span()
        if kind == "shorten":
            stop = len(content)
        content = content[:start] + _replacement(kind, content[start:stop], other, draw) + content[stop:]
    return content


def _replacement(kind, piece, other, draw):
    """A piece with flipped bits, copies of it, a number, or what parsers give a meaning to; nothing for the rest."""
    if kind == "flip":
        return bytes(byte ^ (1 << draw.randrange(8)) for byte in piece)
    if kind == "repeat":
        return piece * draw.choice([2, 2, 3, 51])
    if kind == "number":
        return draw.choice(NUMBERS)
    if kind == "insert":
        telling = draw.choice(TELLING) * draw.choice([1, 1, 3, 100])
        return draw.choice([telling, telling, draw.randbytes(8)]) + piece
    if kind == "swap":
        first, last = _place(other, draw)
        return other[first:last]
    return b""


def _inside_zip(content, draw):
    """An archive with one damaged member and right checksums; None for what is no archive."""
    if content[:2] != b"PK":
        return None
    members = members_of(content)
    name, other = (draw.choice(sorted(members)) for _ in range(2))
    with zipfile.ZipFile(BytesIO(content)) as archive:
        kind = archive.infolist()[0].compress_type
    return zipped({**members, name: damaged(members[name], members[other], draw)}, kind)


def _in_json(content, draw):
    """The same JSON with another value, a piece of itself, or nothing somewhere, or nested deeply, or with a key twice.

    None for what is no JSON object.
    """
    if content[:1] != b"{":
        return None
    try:
        root = json.loads(content)
    except (ValueError, RecursionError):  # a seed may be broken or deep already
        return None
    for _ in range(draw.choice([1, 1, 2])):
        places = _places(root)
        if places:
            holder, key = draw.choice(places)
            if draw.random() < 0.15:
                del holder[key]
            else:
                inside, at = draw.choice(places)
                piece = json.loads(json.dumps(inside[at]))
                holder[key] = draw.choice([draw.choice(VALUES), piece])
    text = json.dumps(root)
    if draw.random() < 0.1:
        depth = draw.choice([500, 5000])
        text = text.replace("1", "[" * depth + "]" * depth, 1)
    if draw.random() < 0.1:
        text = text.replace('{"', '{"edge": 1, "edge": 2, "', draw.choice([1, 2, -1]))
    return text.encode()


def _places(value):
    """Every place of a value inside, as what holds it and the key there."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


def _place(content, draw):
    """A slice: often near the beginning, where headers are, often short."""
    start = draw.randrange(len(content) + 1)
    if draw.random() < 0.5:
        start = min(start, draw.randrange(200))
    return start, min(start + draw.choice([1, 1, 2, 4, 8, 64, 1000]), len(content))
