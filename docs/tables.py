"""What pages show of benchmark records: whole tables, and single numbers.

A page marks a place by ``<!-- record: NAME -->`` and ``<!-- end -->``. What is between them becomes the tables of
benchmarks/records/NAME.json, with the command, the machine and the versions. ``NAME 0 2`` takes some of its tables.
Between ``<!-- numbers: NAME -->`` and ``<!-- end -->`` stands what somebody wrote. Every number there must be one that
was printed, or one of these rounded.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

DOCS = Path(__file__).parent
RECORDS = DOCS.parent / "benchmarks" / "records"
PLACE = re.compile(r"(<!-- record: (\S+)((?: \d+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
QUOTED = re.compile(r"<!-- numbers: (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
PLAIN = str.maketrans(SUPERSCRIPTS, "0123456789")
HIDDEN = ("bar", "reach", "memory bar", "fits")
"""Columns that are for those who develop."""


def table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown, numbers to the right."""
    shown = [place for place, name in enumerate(columns) if name not in HIDDEN]
    # A contender that failed has fewer cells.
    lines = [
        [row[place].replace("|", r"\|") if place < len(row) else "" for place in shown] for row in (columns, *rows)
    ]
    numbers = [all(re.match(r"^[−+-]?[\d.,]*\d|^—?$", row[i]) for row in lines[1:]) for i in range(len(shown))]
    marks = ["---:" if right else "---" for right in numbers]
    text = "\n".join(f"| {' | '.join(row)} |" for row in (lines[0], marks, *lines[1:]))
    return f"{wrapped(title)}:\n\n{text}\n" if title else f"{text}\n"


def rendered(name: str, chosen: str) -> str:
    record = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    numbers = [int(number) for number in chosen.split()] or range(len(record["tables"]))
    parts = [table(**record["tables"][number]) for number in numbers]
    versions = ", ".join(f"{package} {number}" for package, number in record["versions"].items())
    note = f" {record['note']}" if record["note"] else ""
    source = f"`{record['command']}`, {record['date']}; {record['machine']}; {versions}.{note}"
    return "\n" + "\n".join(parts) + "\n" + wrapped(source) + "\n\n"


def wrapped(text: str, width: int = 100) -> str:
    """Lines of at most so many characters; what is between backticks stays in one line."""
    lines = [""]
    for word in re.findall(r"`[^`]*`\S*|\S+", text):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def with_tables(page: str) -> str:
    return PLACE.sub(lambda found: found[1] + rendered(found[2], found[3]) + found[4], page)


def numbers(text: str) -> list[Decimal]:
    """The numbers of a text, without those in code and in links; 10⁸ is one."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text).replace("−", "-")
    text = re.sub(f"10([{SUPERSCRIPTS}]+)", lambda power: "1e" + power[1].translate(PLAIN), text)
    return [Decimal(found.replace(",", "")) for found in NUMBER.findall(text)]


def printed(name: str) -> list[Decimal]:
    """The numbers of a record."""
    record = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return numbers(json.dumps([record["tables"], record.get("text")], ensure_ascii=False))


def unprinted(page: str) -> list[str]:
    """The numbers between ``<!-- numbers: NAME -->`` and ``<!-- end -->`` that the record does not have, rounded."""
    wrong = []
    for name, quoted in QUOTED.findall(page):
        known = printed(name)
        for number in numbers(quoted):
            half = Decimal(5).scaleb(number.as_tuple().exponent - 1)
            if not any(abs(other - number) <= half for other in known):
                wrong.append(f"{number} ({name})")
    return wrong
