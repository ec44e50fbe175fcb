"""Waiting for a command that runs beside a test."""

import os
import time
from pathlib import Path

WORK = 4.0
"""Seconds of a processor after which a command has been imported and is at work, however busy the machine is."""


def wait_for_work(process):
    """Sleep until a process has used so much of a processor; five seconds where that cannot be seen."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        time.sleep(5)
        return
    ticks = os.sysconf("SC_CLK_TCK")
    for _ in range(600):
        if process.poll() is not None:
            return
        fields = stat.read_text().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / ticks >= WORK:
            return
        time.sleep(0.1)
