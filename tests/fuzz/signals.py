"""Commands and fits that are stopped at a random moment.

A command that gets a signal must end within 10 s with its documented exit code and at most one line of error. Its
output must be whole or absent, as the line says. Only SIGKILL may leave a temporary file. A fit that gets Ctrl-C must
raise KeyboardInterrupt within 10 s, and the next fit of the same process must give the usual labels.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache, partial
from pathlib import Path

import numpy as np

from biclique import BicliqueKernelKMeans, BicliqueSpectralClustering, Hypergraph, HypergraphSpectralClustering
from tests.fuzz.campaign import SLOWEST

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
STARTING = 0.25
"""Seconds of a processor within which Python itself starts, and no code of ours can hear a signal."""
SECOND = 0.3
"""How often a second signal follows soon, as from somebody who is impatient."""
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

COMMANDS = {
    "default": "cluster {folder}/t.csv -k 3 -o {place}/out.csv",
    "exact": "cluster {folder}/t.csv -k 3 --affinity rbf --gram tiled -o {place}/out.csv",
    "array": "cluster {folder}/t.npy -k 3 -o {place}/out.parquet",
    "neighbours": "cluster {folder}/t.npy -k 3 --affinity nearest_neighbors -o {place}/out.npy",
    "hypergraph": "hypergraph cluster {folder}/h.hgr -k 3 -o {place}/out.csv",
    "convert": "hypergraph convert {folder}/h.hgr {place}/out.json",
}
"""What reads files of one folder and writes one file, the last word, into another."""


def make_inputs(folder):
    """A table and a hypergraph, so large that the work takes about as long as the imports."""
    X, edges = rows(6000), np.random.RandomState(0).randint(1, 15_001, (20_000, 4))
    np.save(folder / "t.npy", X)
    np.savetxt(folder / "t.csv", X[:4000], delimiter=",", header="a,b,c,d,e", comments="")
    np.savetxt(folder / "h.hgr", edges, fmt="%d", header="20000 15000", comments="")


def rows(n):
    """Three groups in five columns."""
    draw = np.random.RandomState(0)
    return draw.normal(size=(n, 5)) + 6 * np.eye(3, 5)[draw.randint(0, 3, n)]


# Commands


def start(words):
    command = [sys.executable, "-m", "biclique", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT, preexec_fn=hear)


def hear():
    """Usual handlers: a shell hides Ctrl-C from what runs in its background, and nohup hides SIGHUP."""
    for number in SIGNALS[:3]:
        signal.signal(number, signal.SIG_DFL)


def used(process):
    """Seconds of a processor that it has used, which other work on the machine does not change; inf when it is over."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return float("inf") if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@cache
def undisturbed(command, folder):
    """The output, and the seconds of a processor until the end."""
    with tempfile.TemporaryDirectory() as place:
        words = command.format(folder=folder, place=place).split()
        process, seconds = start(words), 0.0
        while (now := used(process)) < float("inf"):
            seconds = now
            time.sleep(0.005)
        _, err = process.communicate(timeout=120)
        if process.returncode:
            raise RuntimeError(f"{command}: {err}")
        return Path(words[-1]).read_bytes(), seconds


def kill(command, number, folder, moment, twice):
    """What became of one command, and why that is a failure."""
    with tempfile.TemporaryDirectory() as place:
        words = command.format(folder=folder, place=place).split()
        process, output = start(words), Path(words[-1])
        while used(process) < moment:
            time.sleep(0.003)
        time.sleep(moment % 0.01)  # the clock counts hundredths
        process.send_signal(number)
        if twice:
            time.sleep(0.02)
            process.send_signal(number)
        try:
            _, err = process.communicate(timeout=SLOWEST)
        except subprocess.TimeoutExpired:
            process.kill()
            return "hang", f"still there {SLOWEST:g} s later; {process.communicate()[1]}"
        there = output.read_bytes() if output.exists() else None
        rubbish = [name for name in os.listdir(place) if name != output.name]
        whole, _ = undisturbed(command, folder)
        return judge(number, process.returncode, err, there, whole, rubbish)


def judge(number, code, err, there, whole, rubbish):
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
    complete = "was written and is complete" in err
    if complete != (there is not None) or complete == ("nothing was written" in err):
        return "untrue", f"the message contradicts the output; {facts}"
    return ("after" if complete else "before"), ""


def kill_many(name, number, kills, seed, folder):
    """The failures of a command that is killed at moments that are uniform over its run."""
    command, failures = COMMANDS[name], []
    _, seconds = undisturbed(command, folder)
    draw = random.Random(f"{seed}/{name}/{number}")
    for _ in range(kills):
        moment, twice = draw.uniform(0, seconds), draw.random() < SECOND
        outcome, failure = kill(command, number, folder, moment, twice)
        if outcome == "start" and moment > STARTING:
            failure = "the signal was heard by nobody, long after the first line"
        if failure:
            failures.append(f"{name}, {number.name} after {moment:.3f} of {seconds:.3f} s: {outcome}: {failure}")
    return failures


# Fits


def labels(X, **options):
    return BicliqueSpectralClustering(3, random_state=0, **options).fit(X).labels_


def dask_labels(X):
    import dask.array as da

    return labels(da.from_array(X, chunks=(1000, -1))).compute()


def ways():
    """A fit of each kind, as a function that gives the labels."""
    X, draw = rows(8000), np.random.RandomState(0)
    edges = draw.randint(0, 3000, (20_000, 1)) + draw.randint(0, 40, (20_000, 4))
    hypergraph = Hypergraph.from_edges(edges.tolist())
    rbf = {"affinity": "rbf"}
    return {
        "neighborhoods": partial(labels, X),
        "dense": partial(labels, X[:3000], **rbf, gram="dense"),
        "tiled": partial(labels, X, **rbf, gram="tiled"),
        "nystroem": partial(labels, X, **rbf, gram="nystroem", rank=300),
        "features": partial(labels, X, **rbf, gram="features", rank=300),
        "dask": partial(dask_labels, X),
        "nearest_neighbors": partial(labels, X, affinity="nearest_neighbors"),
        "kernel_kmeans": lambda: BicliqueKernelKMeans(3, random_state=0).fit(X[:3000]).labels_,
        "hypergraph": lambda: HypergraphSpectralClustering(3, random_state=0).fit(hypergraph).labels_,
    }


def interrupt(fit, delay):
    """Seconds from Ctrl-C to KeyboardInterrupt; None if the fit was done before, inf if Python lost it."""
    sent = [0.0]

    def send():
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


def interrupt_many(way, kills, seed, longest=None):
    """Interrupt a fit, then compare the labels of the next one.

    ``longest`` are the seconds until an interrupt, by default those of a whole fit.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fit, draw = ways()[way], random.Random(f"{seed}/{way}")
    usual, began = fit(), time.monotonic()
    fit()
    seconds = longest or time.monotonic() - began
    for kill in range(kills):
        heard = interrupt(fit, draw.uniform(0, seconds))
        if heard is not None and SLOWEST < heard < float("inf"):  # inf: lost in a finaliser, by Python
            raise AssertionError(f"{way}: {heard:.2f} s until Ctrl-C was heard")
        if not np.array_equal(fit(), usual):
            raise AssertionError(f"{way}: other labels after {kill + 1} interrupts")
