"""What is known about cells that differ from the paper by more than 0.02, and what the page says before its tables."""

from __future__ import annotations

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
    "Protocol: iris and Hopkins155 raw, spine and ovarian z-scored; γ ∈ 10^(−3…5), d ∈ {1, 3, …, 9}, c ∈ {0, "
    "1}, m ∈ {2, 4, …, 20}; the lowest mean error over 100 runs of k-means with one k-means++ start each. "
    "Parameters are chosen by looking at the labels, as the paper does; on Hopkins155 for each sequence. What "
    "a user without labels gets is said where it differs.",
    "**Where the eigenvectors come from.** The authors' public demo takes the first k columns that a general "
    "eigenvalue routine returns, in no particular order, and not those of the largest eigenvalues. Where the "
    'kernel is nearly the identity (large γ) the two differ. The rows "demo\'s eigenvectors" do as the demo '
    "does: spine at m = 2 then comes out as printed.",
    "**Ovarian.** None of the preparations that the paper and the demo suggest (raw, z-scored, min-max, unit "
    "rows; 100 and 4000 features; largest, smallest and the demo's eigenvectors) gives the printed 0.0841. "
    "Ours at m = 2 agrees with the paper, so data and protocol are most likely the same; what was done "
    "differently at m ≥ 4 we could not find out.",
    "**d^inh on Hopkins155.** With edges drawn once from all points it is worse than the paper prints; with "
    "edges redrawn inside the clusters found so far, which is the method's own protocol and uses no labels, it "
    "is better at m = 4 and better still with the authors' five points. On two motions we are below the authors' "
    "own number; what separates us from their 0.020 is a handful of sequences with three motions. `python "
    "benchmarks/motion.py --data FOLDER --all` prints the residual of the kept and of the true partition: on "
    "some of these the kept one has the smaller residual, so the criterion itself prefers it, on others ten "
    "rounds of random draws do not find the true one, and the best of three searches closes a part of the gap.",
]
"""Paragraphs of the page."""
