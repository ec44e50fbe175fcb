"""What the paper prints: tables, run times, data sets; and what is known about differences."""

from __future__ import annotations

from typing import Any

DATA = ("iris", "spine", "ovarian", "hopkins155")

GAMMAS = tuple(10.0**power for power in range(-3, 6))
DEGREES = (1, 3, 5, 7, 9)
OFFSETS = (0, 1)
ORDERS = tuple(range(2, 21, 2))
REPEATS = 100

Printed = dict[str, tuple[float, float | None]]
"""For each data set an error rate and its deviation over repeats of k-means."""


def _row(*numbers: Any) -> dict[str, Any]:
    """One number for each data set, in the order of DATA."""
    return dict(zip(DATA, numbers, strict=True))


TABLE_1: dict[str, Printed] = {
    "Gaussian, m = 2": _row((0.1027, 0.0033), (0.3191, 0.0025), (0.1315, 0.0023), (0.1600, None)),
    "Gaussian, ours, m ≥ 4": _row((0.0693, 0.0033), (0.2807, 0.0000), (0.0841, 0.0000), (0.1112, None)),
    "Gaussian, max": _row((0.0737, 0.0318), (0.3000, 0.0000), (0.1806, 0.0000), (0.1465, None)),
    "Gaussian, affine subspace": _row((0.2267, 0.0000), (0.2839, 0.0000), (0.1690, 0.0023), (0.1294, None)),
    "Gaussian, d^{H−2}": _row((0.2407, 0.0662), (0.3195, 0.0078), (0.3317, 0.0892), (0.1490, None)),
    "Polynomial, m = 2": _row((0.2922, 0.0746), (0.3183, 0.0295), (0.2043, 0.0780), (0.2278, None)),
    "Polynomial, ours, m ≥ 4": _row((0.2719, 0.0383), (0.3142, 0.0452), (0.1898, 0.0794), (0.2258, None)),
    "Polynomial, max": _row((0.4359, 0.0546), (0.3219, 0.0050), (0.2817, 0.1201), (0.2934, None)),
    "Polynomial, dot product": _row((0.3227, 0.0199), (0.3828, 0.0754), (0.4399, 0.0093), (0.2654, None)),
}

RUN_TIMES: dict[str, dict[str, float]] = {
    "Gaussian, m = 2": _row(6.99e-5, 4.05e-4, 2.18e-4, 4.82e-2),
    "Gaussian, ours, m ≥ 4": _row(6.05e-5, 4.28e-4, 2.41e-4, 5.22e-2),
    "Gaussian, max": _row(1.57e-3, 1.54e-2, 4.31e-3, 3.69),
    "Gaussian, affine subspace": _row(9.16e-4, 7.14e-3, 2.70e-2, 41.2),
    "Gaussian, d^{H−2}": _row(6.12e-2, 0.215, 0.101, 12.2),
    "Polynomial, m = 2": _row(3.94e-5, 1.11e-4, 7.29e-5, 2.69e-2),
    "Polynomial, ours, m ≥ 4": _row(3.11e-5, 6.73e-5, 1.07e-4, 2.20e-2),
    "Polynomial, max": _row(1.57e-3, 1.54e-2, 4.31e-3, 3.69),
    "Polynomial, dot product": _row(9.16e-4, 7.14e-3, 2.70e-2, 41.2),
}
"""Seconds, as printed; the last two rows repeat those of the max and affine models."""

INHOMOGENEOUS: dict[str, Printed] = {
    "own splitting, sampled": _row((0.4822, 0.0113), (0.3284, 0.0067), (0.3952, 0.0000), (0.4000, None)),
    "d^inh, sampled": _row((0.0853, 0.0645), (0.3026, 0.0539), (0.1111, 0.0000), (0.0732, None)),
    "ours, m = 4": _row((0.0723, 0.0319), (0.2806, 0.0000), (0.0841, 0.0000), (0.1112, None)),
    "ours, best m": _row((0.0697, 0.0033), (0.2806, 0.0000), (0.0841, 0.0000), (0.0927, None)),
}

DATA_SETS: dict[str, tuple[int, float]] = _row((150, 4), (310, 6), (216, 100), (45850, 89.32))
"""Points, and dimensions (for Hopkins155 the sum and the mean over the sequences)."""

PROTOCOL_ERROR = {2: 0.0140, 3: 0.0406, 0: 0.020}
"""Li and Milenkovic's own error rates on Hopkins155: two motions, three, all."""


# What is known about cells that differ by more than 0.02, and what the page says before its tables


LARGE = 0.02

_NO_PREPARATION = "no preparation that we tried gives 0.0841: see the table of preparations"
_SHIFT = "inner products depend on where the origin is put, and the paper does not say; ours is X + max(−X)"
_DEMO = "the demo's own translation of raw features, and its eigenvectors; it is there for iris and the Gaussian only"
_NOT_SUBSPACES = "the protocol looks for affine subspaces, which these classes are not, and chooses nothing by labels"
_OTHER_READING = "the other reading of this row, from the main text; the appendix spells out the eigenvalue"
_UNCENTRED = "inner products are not centred, so the origin matters, and the paper does not say where it was"
_REPEATS = "the closed form with repeated points; the row above has distinct ones"

REMARKS: dict[tuple[str, str], str] = {
    (
        "Gaussian, m = 2",
        "hopkins155",
    ): "the best γ of each sequence, by its labels; one γ for all is far worse (see below)",
    ("Gaussian, ours, m ≥ 4", "ovarian"): _NO_PREPARATION,
    ("Gaussian, ours, m ≥ 4, demo's eigenvectors", "ovarian"): _NO_PREPARATION,
    ("ours, m = 4", "ovarian"): _NO_PREPARATION,
    ("ours, best m", "ovarian"): _NO_PREPARATION,
    ("Gaussian, max", ""): "the best γ of each data set or sequence, by its labels",
    ("Gaussian, affine subspace (eigenvalue)", ""): _UNCENTRED,
    ("Gaussian, affine subspace (mean distance)", ""): _OTHER_READING,
    (
        "Gaussian, d^{H−2}",
        "",
    ): "a γ of the same grid does better than the printed number; the paper does not print its γ",
    ("Polynomial, m = 2", ""): _SHIFT,
    ("Polynomial, ours, m ≥ 4", ""): _SHIFT,
    ("Polynomial, m = 2, as in the demo", ""): _DEMO,
    ("Polynomial, ours, m ≥ 4, as in the demo", ""): _DEMO,
    ("Polynomial, max", ""): "the largest kernel of a triple is that of its longest points: A has large negative "
    "eigenvalues, and which eigenvectors are called leading decides; we take the algebraically largest",
    ("Polynomial, dot product", ""): _SHIFT,
    ("Polynomial, dot product, repeats", ""): _REPEATS,
    ("own splitting, sampled once", ""): "lower than printed; the paper gives neither its sampling nor its γ",
    (
        "d^inh, sampled once",
        "",
    ): "edges drawn once from all points; the method itself redraws them inside the clusters it "
    "finds, see the next rows",
    (
        "d^inh, m = 4, redrawn in clusters",
        "hopkins155",
    ): "lower: redrawing inside clusters, and σ chosen by the residual",
    ("d^inh, m = 5, its authors' protocol", "hopkins155"): "lower: the authors' own edges of five points and protocol",
    ("d^inh, m = 5, protocol, best of 3 searches", "hopkins155"): "lower: the same, and the smallest residual of three",
    ("d^inh, m = 5, protocol, best of 3 searches", ""): _NOT_SUBSPACES,
    ("d^inh, m = 4, redrawn in clusters", "iris"): "lower, and nothing chosen by labels",
    ("d^inh, m = 4, redrawn in clusters", ""): _NOT_SUBSPACES,
    ("d^inh, m = 5, its authors' protocol", ""): _NOT_SUBSPACES,
}
"""(row, data set, or "" for every one) → a sentence."""

FINDINGS: list[str] = [
    "**Protocol.** iris and Hopkins155 are raw, spine and ovarian z-scored. Parameters: γ ∈ 10^(−3…5), d ∈ {1, "
    "3, …, 9}, c ∈ {0, 1}, m ∈ {2, 4, …, 20}. Each number is the lowest mean error over 100 runs of k-means "
    "with one k-means++ start each. Parameters are chosen by looking at the labels, as the paper does; on "
    "Hopkins155 for each sequence. If a user without labels gets something else, the table says so.",
    "**Where the eigenvectors come from.** The authors' public demo takes the first k columns that a general "
    "eigenvalue routine returns. These come in no particular order, and need not belong to the largest "
    "eigenvalues. If the kernel is nearly the identity (large γ), the two differ. The rows \"demo's "
    'eigenvectors" do as the demo does. Then spine at m = 2 has the printed error.',
    "**Ovarian.** We tried the preparations that the paper and the demo suggest: raw, z-scored, min-max, unit "
    "rows; 100 and 4000 features; largest, smallest and the demo's eigenvectors. None gives the printed "
    "0.0841. Our error at m = 2 agrees with the paper, so data and protocol are most likely the same. We could "
    "not find out what was done differently at m ≥ 4.",
    "**d^inh on Hopkins155.** If edges are drawn once from all points, the error is higher than the paper "
    "prints. The method's own protocol draws edges again inside the clusters found so far, and uses no labels. "
    "With it the error is lower at m = 4, and lower still with edges of five points, as the authors have them. "
    "On two motions our error is below the authors' own number. On three motions a handful of sequences "
    "separates us from their 0.020. `python benchmarks/motion.py --data FOLDER --all` prints the residual of "
    "the partition that was kept and of the true one. On some of these sequences the kept one has the smaller "
    "residual: the criterion itself prefers it. On others ten rounds of random draws do not find the true one. "
    "The best of three searches closes a part of the gap.",
]
"""Paragraphs of the page."""
