"""
Heat kernels: does the Laplacian of m/2 variables converge?
===========================================================

Theorem 2 of the paper says that C (n t_n)⁻¹ L f → Δf in probability for points drawn uniformly on a
manifold, with t_n = n^(−1/(2+α)) and any α > 0. This study draws points on a circle and a sphere, takes
m = 2, 4, 6, and compares vol/(h nʰ t) L f, h = m/2, with Δf for several α. Then it does the same with
evenly spaced points on an ellipse. The page on theory says what the pictures show.

.. image:: /images/heat_circle.png
.. image:: /images/heat_sphere.png
.. image:: /images/heat_ellipse.png

``python examples/heat_convergence.py --out FOLDER`` writes ``heat_convergence.csv`` and the three pictures. It takes
minutes, so the site shows pictures that were drawn before. ``--quick`` takes fewer points; ``make docs-full`` runs it
that way.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique.multiway import HeatLaplacian

# sphinx_gallery_thumbnail_path = 'images/heat_circle.png'

ORDERS = (2, 4, 6)
ALPHAS = (0.5, 2.0, 6.0)
COLOURS = {2: "#0072b2", 4: "#e69f00", 6: "#009e73"}
MARKERS = {2: "o", 4: "s", 6: "^"}


def circle(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], float, int]:
    """Uniform points on the unit circle, f' = cos θ, Δf' = cos θ, length, dimension."""
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]), np.cos(angle), np.cos(angle), 2 * np.pi, 1


def sphere(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], float, int]:
    """Uniform points on the unit sphere, f' = z, Δf' = 2z, area, dimension."""
    X = rng.standard_normal((n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X[:, 2], 2 * X[:, 2], 4 * np.pi, 2


def ellipse(
    n: int, axes: tuple[float, float] = (3.0, 0.5)
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], float, int]:
    """Points at even arc length on an ellipse, f' = cos(2πs/length), Δf' = (2π/length)² f'."""
    fine = np.linspace(0, 2 * np.pi, 200_001)
    speed = np.hypot(axes[0] * np.sin(fine), axes[1] * np.cos(fine))
    arc = np.concatenate([[0.0], np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(fine))])
    length = float(arc[-1])
    s = np.arange(n) / n
    angle = np.interp(s * length, arc, fine)
    f = np.cos(2 * np.pi * s)
    X = np.column_stack([axes[0] * np.cos(angle), axes[1] * np.sin(angle)])
    return X, f, (2 * np.pi / length) ** 2 * f, length, 1


def relative_error(facts: tuple[Any, ...], order: int, t: float, tuples: NDArray[Any]) -> float:
    """Root mean square of vol/(h nʰ t) L f − Δf over some tuples, relative to that of Δf."""
    X, f, laplace, volume, dimension = facts
    laplacian = HeatLaplacian(X, t, order, dimension)
    found = laplacian.factor(volume) * laplacian.apply(f, tuples)
    expected = laplace[tuples].sum(axis=1)
    return float(np.sqrt(np.mean((found - expected) ** 2) / np.mean(expected**2)))


def study(sizes: list[int], repeats: int) -> list[dict[str, Any]]:
    records = []
    for name, draw in (("circle", circle), ("sphere", sphere)):
        for n in sizes:
            for repeat in range(repeats):
                rng = np.random.default_rng([n, repeat])
                facts = draw(n, rng)
                # F = 0 is asked of the function: take the sampled mean away.
                facts = (facts[0], facts[1] - facts[1].mean(), *facts[2:])
                for order in ORDERS:
                    tuples = rng.integers(0, n, (200, order // 2))
                    for alpha in ALPHAS:
                        t = n ** (-1 / (2 + alpha)) / 10
                        error = relative_error(facts, order, t, tuples)
                        records.append({"manifold": name, "n": n, "alpha": alpha, "order": order, "error": error})
    for n in sizes:
        facts = ellipse(n)
        rng = np.random.default_rng(n)
        for order in ORDERS:
            error = relative_error(facts, order, 20.0 / n, rng.integers(0, n, (200, order // 2)))
            records.append({"manifold": "ellipse", "n": n, "alpha": "even points", "order": order, "error": error})
    return records


def median_curve(records: list[dict[str, Any]], **fixed: object) -> tuple[list[int], list[float]]:
    chosen = [r for r in records if all(r[key] == value for key, value in fixed.items())]
    sizes = sorted({r["n"] for r in chosen})
    return sizes, [float(np.median([r["error"] for r in chosen if r["n"] == n])) for n in sizes]


def plot(axis: Any, sizes: list[int], errors: list[float], order: int) -> None:
    axis.loglog(sizes, errors, marker=MARKERS[order], color=COLOURS[order], label=f"m = {order}")


def dress(axis: Any, sizes: list[int], label: str) -> None:
    """Ticks at the sizes themselves, in plain numbers."""
    axis.set_xticks(sizes, [str(n) for n in sizes], fontsize=8)
    axis.set_xticks([], minor=True)
    axis.set_xlabel(label)
    axis.grid(alpha=0.3, which="both")


def draw(records: list[dict[str, Any]], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name in ("circle", "sphere"):
        figure, axes = plt.subplots(1, len(ALPHAS), figsize=(10, 3.4), sharey=True, constrained_layout=True)
        for axis, alpha in zip(axes, ALPHAS, strict=True):
            for order in ORDERS:
                sizes, errors = median_curve(records, manifold=name, alpha=alpha, order=order)
                plot(axis, sizes, errors, order)
            axis.set_title(f"t = n^(−1/{2 + alpha:g})/10   (α = {alpha:g})", fontsize=10)
            dress(axis, sizes, "points n")
        axes[0].set_ylabel("relative error of Δf")
        axes[0].legend(frameon=False)
        figure.suptitle(f"{name}: vol/(h nʰ t) L f against Δf, uniform random points")
        figure.savefig(folder / f"heat_{name}.png", dpi=110)
        plt.close(figure)
    figure, axis = plt.subplots(figsize=(5, 3.6), constrained_layout=True)
    for order in ORDERS:
        sizes, errors = median_curve(records, manifold="ellipse", order=order)
        plot(axis, sizes, errors, order)
    dress(axis, sizes, "points n, evenly spaced")
    axis.set_ylabel("relative error of Δf")
    axis.set_title("ellipse 3 : 0.5, the counter-example")
    axis.legend(frameon=False)
    figure.savefig(folder / "heat_ellipse.png", dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/heat"), help="folder for the table and the pictures")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs")
    options = parser.parse_args()
    sizes, repeats = ([250, 500, 1000], 2) if options.quick else ([500, 1000, 2000, 4000, 8000], 5)
    options.out.mkdir(parents=True, exist_ok=True)
    records = study(sizes, repeats)
    with (options.out / "heat_convergence.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    print(f"{'manifold':10}{'alpha':>12}{'order':>7}  error by n = {', '.join(map(str, sizes))}")
    for name in ("circle", "sphere", "ellipse"):
        for alpha in ALPHAS if name != "ellipse" else ("even points",):
            for order in ORDERS:
                _, errors = median_curve(records, manifold=name, alpha=alpha, order=order)
                print(f"{name:10}{alpha!s:>12}{order:>7}  " + "  ".join(f"{e:.3g}" for e in errors))
    try:
        draw(records, options.out)
    except ImportError:
        print("no pictures: they need matplotlib, pip install '.[plot]' in a clone of biclique")


if __name__ == "__main__":
    main()
