"""``python -m tests.fuzz.signals --kills 50``: commands and fits that are stopped at a random moment.

A command that gets a signal must end within 10 s with its documented exit code and at most one line of error. Its
output must be whole or absent, as the line says. Only SIGKILL may leave a temporary file. A fit that gets Ctrl-C must
raise KeyboardInterrupt within 10 s, and the next fit of the same process must give the usual labels.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.campaign import SLOWEST, Report

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
STARTING = 0.25
"""Seconds of a processor within which Python itself starts, and no code of ours can hear a signal."""
SECOND = 0.3
"""How often a second signal follows soon, as from somebody who is impatient."""
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Command:
    """Arguments with {folder} for the input and {output} for what is written."""

    arguments: str
    suffix: str


COMMANDS = {
    "default": Command("cluster {folder}/t.csv -k 3 -o {output}", ".csv"),
    "exact": Command("cluster {folder}/t.csv -k 3 --affinity rbf --gram tiled -o {output}", ".csv"),
    "array": Command("cluster {folder}/t.npy -k 3 -o {output}", ".parquet"),
    "neighbours": Command("cluster {folder}/t.npy -k 3 --affinity nearest_neighbors -o {output}", ".npy"),
    "hypergraph": Command("hypergraph cluster {folder}/h.hgr -k 3 -o {output}", ".csv"),
    "convert": Command("hypergraph convert {folder}/h.hgr {output}", ".json"),
}


def make_inputs(folder: Path) -> None:
    """A table and a hypergraph, so large that the work takes about as long as the imports."""
    draw = np.random.RandomState(0)
    X = draw.normal(size=(6000, 5)) + 6 * np.eye(3, 5)[draw.randint(0, 3, 6000)]
    np.save(folder / "t.npy", X)
    np.savetxt(folder / "t.csv", X[:4000], delimiter=",", header="a,b,c,d,e", comments="")
    edges = draw.randint(0, 5000, (20_000, 1)) * 3 % 15_000 + 3 * draw.randint(0, 40, (20_000, 4)) + 1
    edges = edges % 15_000 + 1
    lines = "".join(" ".join(map(str, edge)) + "\n" for edge in edges)
    (folder / "h.hgr").write_text(f"{len(edges)} 15000\n{lines}")


# Commands


def start(command: Command, folder: Path, output: Path) -> subprocess.Popen[str]:
    arguments = command.arguments.format(folder=folder, output=output).split()
    return subprocess.Popen(
        [sys.executable, "-m", "biclique", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=hear,
    )


def hear() -> None:
    """Usual handlers: a shell hides Ctrl-C from what runs in its background, and nohup hides SIGHUP."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def used(process: subprocess.Popen[str]) -> float:
    """Seconds of a processor that it has used, which other work on the machine does not change; inf when it is over."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return float("inf") if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@cache
def undisturbed(command: Command, folder: Path) -> tuple[bytes, float]:
    """The output, and the seconds of a processor until the end."""
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / f"out{command.suffix}"
        process = start(command, folder, output)
        seconds = 0.0
        while (now := used(process)) < float("inf"):
            seconds = now
            time.sleep(0.005)
        _, err = process.communicate(timeout=120)
        if process.returncode:
            raise RuntimeError(f"{command.arguments}: {err}")
        return output.read_bytes(), seconds


def kill(command: Command, number: signal.Signals, whole: bytes, moment: float, folder: Path, twice: bool) -> Any:
    """What became of one command, why that is a failure, and the seconds from the signal to the end."""
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / f"out{command.suffix}"
        process = start(command, folder, output)
        while used(process) < moment:
            time.sleep(0.003)
        time.sleep(moment % 0.01)  # the clock counts hundredths
        sent = time.monotonic()
        process.send_signal(number)
        if twice:
            time.sleep(0.02)
            process.send_signal(number)
        try:
            _, err = process.communicate(timeout=SLOWEST)
        except subprocess.TimeoutExpired:
            process.kill()
            return "hang", f"still there {SLOWEST:g} s later; {process.communicate()[1]}", SLOWEST
        took = time.monotonic() - sent
        there = output.read_bytes() if output.exists() else None
        rubbish = [name for name in os.listdir(place) if name != output.name]
        return *judge(number, process.returncode, err, there, whole, rubbish), took


def judge(
    number: signal.Signals, code: int, err: str, there: bytes | None, whole: bytes, rubbish: list[str]
) -> tuple[str, str]:
    """The outcome, and the failure if it is one. A shell shows death by a signal as 128 and its number."""
    facts = f"exit {code}, output {'absent' if there is None else len(there)}, {rubbish}, stderr: {err[-600:]}"
    if there not in (None, whole):
        return "damaged", f"the output differs; {facts}"
    if rubbish and number != signal.SIGKILL:
        return "rubbish", f"files stay; {facts}"
    if "Traceback" in err and "biclique" not in err.replace("biclique.__main__", ""):
        return "start", ""  # while Python itself was starting
    errors = [text for text in err.splitlines() if "warning" not in text]
    if "Traceback" in err or len(errors) > 1:
        return "noise", f"more than one line; {facts}"
    if code == 0:
        return "done", "" if there == whole and not errors else f"exit 0; {facts}"
    if code not in (128 + number, -number):
        return "code", f"not the documented exit code; {facts}"
    if code < 0:
        return ("killed" if number == signal.SIGKILL else "start"), "" if not errors else facts
    said = "was written and is complete" in err
    if said != (there is not None) or said == ("nothing was written" in err):
        return "untrue", f"the message contradicts the output; {facts}"
    return ("after" if said else "before"), ""


def kill_many(name: str, number: signal.Signals, kills: int, seed: int, folder: Path, jobs: int) -> Report:
    """Kill a command at moments that are uniform over its run."""
    command, report = COMMANDS[name], Report("kills")
    whole, seconds = undisturbed(command, folder)
    draw = random.Random(f"{seed}/{name}/{number}")
    moments = [(draw.uniform(0, seconds), draw.random() < SECOND) for _ in range(kills)]
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda m: kill(command, number, whole, m[0], folder, m[1]), moments))
    for (moment, _), (outcome, failure, took) in zip(moments, results, strict=True):
        if outcome == "start" and moment > STARTING:
            failure = "the signal was heard by nobody, long after the first line"
        report.add(f"{name}, {number.name} after {moment:.3f} of {seconds:.3f} s", outcome, failure, took)
    return report


# Fits


def ways() -> dict[str, Callable[[], Any]]:
    """A fit of each kind, as a function that gives the labels."""
    import dask.array as da

    from biclique.cluster.clustering import BicliqueSpectralClustering
    from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
    from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
    from biclique.hypergraph.hypergraph import Hypergraph

    draw = np.random.RandomState(0)
    X = draw.normal(size=(8000, 5)) + 6 * np.eye(3, 5)[draw.randint(0, 3, 8000)]
    edges = Hypergraph.from_edges(
        [list(e) for e in draw.randint(0, 3000, (20_000, 1)) + draw.randint(0, 40, (20_000, 4))]
    )

    def fit(X: Any, **options: Any) -> Callable[[], Any]:
        return lambda: BicliqueSpectralClustering(3, random_state=0, **options).fit(X).labels_

    return {
        "neighborhoods": fit(X),
        "dense": fit(X[:3000], affinity="rbf", gram="dense"),
        "tiled": fit(X, affinity="rbf", gram="tiled"),
        "nystroem": fit(X, affinity="rbf", gram="nystroem", rank=300),
        "features": fit(X, affinity="rbf", gram="features", rank=300),
        "dask": lambda: fit(da.from_array(X, chunks=(1000, -1)))().compute(),
        "nearest_neighbors": fit(X, affinity="nearest_neighbors"),
        "kernel_kmeans": lambda: BicliqueKernelKMeans(3, random_state=0).fit(X[:3000]).labels_,
        "hypergraph": lambda: HypergraphSpectralClustering(3, random_state=0).fit(edges).labels_,
    }


def interrupt(fit: Callable[[], Any], delay: float) -> float | None:
    """Seconds from Ctrl-C to KeyboardInterrupt; None if the fit was done before, inf if Python lost it."""
    sent = [0.0]

    def send() -> None:
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    try:
        timer.start()
        fit()
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    return float("inf") if sent[0] else None


def interrupt_many(way: str, kills: int, seed: int) -> int:
    """In a process of its own, which may crash: interrupt a fit, then compare the labels of the next one."""
    import warnings

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fit = ways()[way]
    draw = random.Random(f"{seed}/{way}")
    usual = fit()
    began = time.monotonic()
    fit()
    seconds = time.monotonic() - began
    taken = []
    for _ in range(kills):
        taken.append(interrupt(fit, draw.uniform(0, seconds)))
        if not np.array_equal(fit(), usual):
            sys.stdout.write(f"other labels after {len(taken)} interrupts\n")
            return 1
    heard = [t for t in taken if t is not None and t < float("inf")]
    late, lost = taken.count(None), taken.count(float("inf"))  # into a finaliser: nobody hears those
    sys.stdout.write(
        f"heard {len(heard)}, after the fit {late}, lost by Python {lost}, slowest {max(heard, default=0):.2f} s\n"
    )
    return int(max(heard, default=0) > SLOWEST)


def interrupt_process(way: str, kills: int, seed: int) -> tuple[str, str]:
    """What became of it, and the failure if it is one."""
    command = [sys.executable, "-m", "tests.fuzz.signals", "--way", way, "--kills", str(kills), "--seed", str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 20 * kills, check=False)
    except subprocess.TimeoutExpired:
        return "hang", f"{way}: hangs"
    if done.returncode:
        return f"exit {done.returncode}", f"{way}: exit {done.returncode}, {done.stdout} {done.stderr[-1500:]}"
    return done.stdout.strip(), ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.signals", description=__doc__)
    parser.add_argument("commands", nargs="*", help=f"all by default: {', '.join(COMMANDS)}, fits")
    parser.add_argument("--kills", type=int, default=50, help="of each command by each signal")
    parser.add_argument("--interrupts", type=int, default=20, help="of each way of fitting")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="commands at a time")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        return interrupt_many(options.way, options.kills, options.seed)
    failures: list[str] = []

    def row(*cells: object) -> None:
        sys.stdout.write("  ".join(f"{cell!s:<17}" for cell in cells).rstrip() + "\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as place:
        make_inputs(Path(place))
        for name in [name for name in options.commands or COMMANDS if name in COMMANDS]:
            for number in SIGNALS:
                report = kill_many(name, number, options.kills, options.seed, Path(place), options.jobs)
                row(name, number.name, report)
                failures += report.failures
    for way in ways() if not options.commands or "fits" in options.commands else []:
        told, failure = interrupt_process(way, options.interrupts, options.seed)
        row("fit", way, told)
        failures += [failure] if failure else []
    for failure in failures:
        sys.stdout.write(f"    {failure}\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
