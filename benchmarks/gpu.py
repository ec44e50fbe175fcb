"""The default and exact kernels on the GPU that is there: seconds of fits, labels included, beside their bars.

    python benchmarks/gpu.py [--only default host generated agreement fits kernel] [--largest 1e8] [--device cpu]

`default`: the hypergraph of neighbourhoods (up to 4,000 landmarks, r = 7) of ten blobs, rows as a tensor on the GPU and
as an array on the host; the best of three fits after a warm-up, one fit of 10⁸ rows. Rows of 10⁵ fits are compared with
the host's. `host`: 3·10⁸ rows as an array in the host's memory, one fit, beside the seconds that the copy alone takes.
`generated`: 10⁹ rows that never exist at once, made chunk by chunk on the device in each of the three
passes; numbers of
landmarks stay there, labels are counted. `fits`: rbf, order 4, exact tiles. `agreement`: exact tiles beside the host's.
`kernel`: evaluations of κ a second (gpu_kernel.py).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from gpu_kernel import main as kernel_table
from sklearn.metrics import adjusted_rand_score

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.fit.neighborhood_cut import map_neighborhoods
from biclique.fit.three_passes import fit_factored
from biclique.progress import Progress
from biclique.rows.array import Block, RowSource
from biclique.runtime.draws import draw_numbers

BARS = {(10**6, 16): (0.35, 0.2), (10**7, 16): (1.5, 0.7), (10**8, 16): (12, 5), (10**6, 256): (1.5, 0.6)}
EXACT_BARS = {200_000: 0.3, 1_000_000: 1.65}
GENERATED, GENERATED_BAR, CHUNK = 10**9, (150, 60), 10**7
FROM_HOST = 3 * 10**8
COMPARED = 10**6  # rows whose labels are compared with the truth


def product_seconds(device: str) -> float:
    """A 4000³ float32 product."""
    A = torch.rand((4000, 4000), device=device)
    return best_of(lambda: A @ A, 3, device)[0]


def best_of(work: Callable[[], Any], times: int, device: str) -> tuple[float, Any]:
    best, found = np.inf, None
    for _ in range(times):
        found = None
        start = time.perf_counter()
        found = work()
        if device != "cpu":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best, found


def peak(device: str) -> str:
    """Most memory of the device since this was last asked, in GB."""
    if device == "cpu":
        return ""
    most = torch.cuda.max_memory_allocated() / 1e9
    torch.cuda.reset_peak_memory_stats()
    return f"{most:.1f}"


def blobs(n: int, device: str, columns: int = 16, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Ten blobs of deviation 4, centres uniform from −10 to 10, and the blob of every row."""
    centres = np.random.default_rng(0).uniform(-10, 10, (10, columns)).astype(np.float32)
    random = torch.Generator(device=device).manual_seed(seed)
    group = torch.randint(0, 10, (n,), generator=random, device=device)
    X = torch.empty((n, columns), device=device)
    for top in range(0, n, CHUNK):
        some = group[top : top + CHUNK]
        noise = torch.randn((len(some), columns), generator=random, device=device)
        X[top : top + CHUNK] = torch.as_tensor(centres, device=device)[some] + 4 * noise
    return X, group


def verdict(seconds: float, bars: tuple[float, float] | None) -> str:
    if bars is None:
        return ""
    met = "reached" if seconds <= bars[1] else "met" if seconds <= bars[0] else f"missed by {seconds / bars[0] - 1:.0%}"
    return f"{bars[0]:g} / {bars[1]:g}: {met}"


def table(title: str, *columns: str) -> None:
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)


def row(*cells: object) -> None:
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def default(device: str, largest: int) -> None:
    columns = (
        "rows",
        "columns",
        "rows on",
        "seconds",
        "bar",
        "slope",
        "ARI",
        "index with the host's",
        "peak GB",
    )
    table("The default: neighbourhoods", *columns)
    sizes = [(n, 16) for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8) if n <= largest]
    sizes += [(10**6, 64), (10**6, 256)] if largest >= 10**6 else []
    before: dict[int, tuple[int, float]] = {}
    for n, d in sizes:
        X, group = blobs(n, device, d)
        truth = group[:COMPARED].cpu().numpy()
        places = ["device", "host"] if n <= 10**7 and d == 16 else ["device"]
        for place in places:
            given = X if place == "device" else X.cpu().numpy()
            ours = BicliqueSpectralClustering(10, random_state=0, device=device)
            seconds, _ = best_of(partial(ours.fit, given), 4 if n <= 10**7 else 1, device)
            same, slope = "", ""
            if n <= 10**5:
                on_host = BicliqueSpectralClustering(10, random_state=0).fit(X.cpu().numpy())
                same = f"{adjusted_rand_score(on_host.labels_, ours.labels_):.6f}"
            if place == "device" and d == 16:
                if d in before:
                    slope = f"{np.log(seconds / before[d][1]) / np.log(n / before[d][0]):.2f}"
                before[d] = n, seconds
            bars = BARS.get((n, d)) if place == "device" else None
            ari = adjusted_rand_score(truth, ours.labels_[:COMPARED])
            row(n, d, place, f"{seconds:.3f}", verdict(seconds, bars), slope, f"{ari:.4f}", same, peak(device))


def host(device: str, largest: int) -> None:
    n = FROM_HOST if largest >= 10**8 else largest
    X, truth = np.empty((n, 16), dtype=np.float32), np.empty(COMPARED, dtype=int)
    for top in range(0, n, CHUNK):
        some, group = blobs(min(CHUNK, n - top), device, seed=top)
        X[top : top + CHUNK] = some.cpu().numpy()
        if top == 0:
            truth = group[:COMPARED].cpu().numpy()
    copying, there = best_of(lambda: torch.tensor(X, device=device), 1, device)
    del there, some, group
    peak(device)
    ours = BicliqueSpectralClustering(10, random_state=0, device=device)
    seconds, _ = best_of(partial(ours.fit, X), 1, device)
    ari = adjusted_rand_score(truth, ours.labels_[: len(truth)])
    table("From the host's memory", "rows", "columns", "seconds", "copying alone", "ARI", "peak GB")
    row(n, 16, f"{seconds:.1f}", f"{copying:.1f}", f"{ari:.4f}", peak(device))


class Generated(RowSource):
    """Rows that a device makes chunk by chunk, in every pass anew."""

    in_memory, weights, n_columns = False, None, 16

    def __init__(self, n: int, chunk: int, device: str) -> None:
        self.n, self.chunk, self.device = n, min(chunk, n), device

    n_rows = property(lambda self: self.n)
    n_counted = property(lambda self: self.n)

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n, self.chunk):
            X, _ = blobs(min(self.chunk, self.n - start), self.device, seed=start)
            yield Block(X, torch.ones(len(X), dtype=torch.float64, device=X.device), start)

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Any, Any]:
        numbers, found = draw_numbers(self.n, size, random), []
        for block in self.blocks():
            own = numbers[np.searchsorted(numbers, block.start) : np.searchsorted(numbers, block.start + self.chunk)]
            found.append(block.rows[torch.as_tensor(own - block.start, device=block.rows.device)].cpu().numpy())
        rows = np.concatenate(found)
        return rows, np.ones(len(rows))

    def map(self, function: Callable[[Block], Any], what: str, progress: Progress) -> list[Any]:  # noqa: ARG002
        return [function(block) for block in self.blocks()]

    def sum(self, function: Callable[[Block], Any], what: str, progress: Progress) -> Any:  # noqa: ARG002
        total = None
        for block in self.blocks():
            found = function(block)
            total = found if total is None else total.__iadd__(found)
        return total

    def keep(self, function: Callable[[Any], Any], *_: Any) -> RowSource:
        """Numbers of landmarks, in two bytes each, stay on the device."""
        parts = [function(block.rows).to(torch.int16) for block in self.blocks()]
        return KeptChunks(self.n, self.chunk, self.device, parts)

    def later(self, *_: Any, **__: Any) -> Any:
        return np.empty((0, 1))

    def label(self, function: Callable[[Any], Any], n_clusters: int, progress: Progress) -> tuple[Any, Any]:  # noqa: ARG002
        sizes = sum(np.bincount(function(block.rows), minlength=n_clusters) for block in self.blocks())
        return np.empty(0), sizes


class KeptChunks(Generated):
    """What is kept of generated rows."""

    def __init__(self, n: int, chunk: int, device: str, parts: list[Any]) -> None:
        super().__init__(n, chunk, device)
        self.parts = parts

    def blocks(self) -> Iterator[Block]:
        for number, part in enumerate(self.parts):
            ones = torch.ones(len(part), dtype=torch.float64, device=part.device)
            yield Block(part, ones, number * self.chunk)


def generated(device: str, largest: int) -> None:
    n = GENERATED if largest >= 10**8 else largest
    settings = BicliqueSpectralClustering(10, random_state=0)._settings()
    source = Generated(n, CHUNK, device)
    made, _ = best_of(lambda: sum(1 for _ in source.blocks()), 1, device)
    seconds, (fitted, training) = best_of(
        lambda: fit_factored(settings, source, map_neighborhoods, Progress(False)), 1, device
    )
    X, group = (some[:100_000] for some in blobs(min(CHUNK, n), device, seed=0))
    ari = adjusted_rand_score(group.cpu().numpy(), fitted.labels(X, None))
    table("Generated chunk by chunk", "rows", "seconds", "bar", "one generation alone", "ARI", "sizes")
    bars = GENERATED_BAR if n == GENERATED else None
    row(n, f"{seconds:.1f}", verdict(seconds, bars), f"{made:.1f}", f"{ari:.4f}", sorted(training.sizes or ()))


def model(**parameters: object) -> BicliqueSpectralClustering:
    return BicliqueSpectralClustering(10, affinity="rbf", order=4, random_state=0, **parameters)


def fits(device: str, largest: int) -> None:
    columns = ("rows", "precision", "seconds", "bar", "passes", "worst residual / λ₁", "ARI", "κ/s over all")
    table("Exact tiles: rbf, order 4", *columns)
    for n in (n for n in (200_000, 1_000_000) if n <= largest):
        X, group = blobs(n, device)
        for precision in ("auto", "fast"):
            ours = model(device=device, precision=precision)
            seconds, _ = best_of(partial(ours.fit, X), 4, device)
            bar = EXACT_BARS[n]
            met = f"{bar:g}: " + ("met" if seconds <= bar else f"missed by {seconds / bar - 1:.0%}")
            residual, speed = ours.residuals_.max() / ours.eigenvalues_[0], ours.n_passes_ * n**2 / seconds
            ari = adjusted_rand_score(group.cpu().numpy(), ours.labels_)
            row(n, precision, f"{seconds:.2f}", met, ours.n_passes_, f"{residual:.1e}", f"{ari:.4f}", f"{speed:.2e}")


def agreement(device: str, largest: int) -> None:  # noqa: ARG001
    table("Exact tiles beside the host's", "rows", "precision", "index with the host's", "worst eigenvalue, relative")
    X = blobs(20_000, "cpu")[0].numpy() / 2  # blobs that hardly overlap
    host = model(gram="tiled", eigen_tol=1e-6).fit(X)
    for precision in ("auto", "fast"):
        ours = model(device=device, precision=precision, eigen_tol=1e-6, gamma=host.gamma_).fit(X)
        gap = np.abs(ours.eigenvalues_ / host.eigenvalues_ - 1).max()
        row(20_000, precision, f"{adjusted_rand_score(host.labels_, ours.labels_):.4f}", f"{gap:.1e}")


def kernel(device: str, largest: int) -> None:  # noqa: ARG001
    kernel_table([])


PARTS = {part.__name__: part for part in (default, host, generated, agreement, fits, kernel)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--largest", type=float, default=1e8, help="most rows")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    name = torch.cuda.get_device_name() if options.device != "cpu" else "CPU"
    print(f"{name}, torch {torch.__version__}; a 4000³ float32 product: {product_seconds(options.device) * 1e3:.2f} ms")
    for part in options.only:
        PARTS[part](options.device, int(options.largest))


if __name__ == "__main__":
    main()
