"""What the paper prints: Table 1, the run times, the inhomogeneous table, the data sets."""

from __future__ import annotations

DATA = ("iris", "spine", "ovarian", "hopkins155")

GAMMAS = tuple(10.0**power for power in range(-3, 6))
DEGREES = (1, 3, 5, 7, 9)
OFFSETS = (0, 1)
ORDERS = tuple(range(2, 21, 2))
REPEATS = 100

TABLE_1: dict[str, dict[str, tuple[float, float | None]]] = {
    "Gaussian, m = 2": {
        "iris": (0.1027, 0.0033),
        "spine": (0.3191, 0.0025),
        "ovarian": (0.1315, 0.0023),
        "hopkins155": (0.1600, None),
    },
    "Gaussian, ours, m ≥ 4": {
        "iris": (0.0693, 0.0033),
        "spine": (0.2807, 0.0000),
        "ovarian": (0.0841, 0.0000),
        "hopkins155": (0.1112, None),
    },
    "Gaussian, max": {
        "iris": (0.0737, 0.0318),
        "spine": (0.3000, 0.0000),
        "ovarian": (0.1806, 0.0000),
        "hopkins155": (0.1465, None),
    },
    "Gaussian, affine subspace": {
        "iris": (0.2267, 0.0000),
        "spine": (0.2839, 0.0000),
        "ovarian": (0.1690, 0.0023),
        "hopkins155": (0.1294, None),
    },
    "Gaussian, d^{H−2}": {
        "iris": (0.2407, 0.0662),
        "spine": (0.3195, 0.0078),
        "ovarian": (0.3317, 0.0892),
        "hopkins155": (0.1490, None),
    },
    "Polynomial, m = 2": {
        "iris": (0.2922, 0.0746),
        "spine": (0.3183, 0.0295),
        "ovarian": (0.2043, 0.0780),
        "hopkins155": (0.2278, None),
    },
    "Polynomial, ours, m ≥ 4": {
        "iris": (0.2719, 0.0383),
        "spine": (0.3142, 0.0452),
        "ovarian": (0.1898, 0.0794),
        "hopkins155": (0.2258, None),
    },
    "Polynomial, max": {
        "iris": (0.4359, 0.0546),
        "spine": (0.3219, 0.0050),
        "ovarian": (0.2817, 0.1201),
        "hopkins155": (0.2934, None),
    },
    "Polynomial, dot product": {
        "iris": (0.3227, 0.0199),
        "spine": (0.3828, 0.0754),
        "ovarian": (0.4399, 0.0093),
        "hopkins155": (0.2654, None),
    },
}
"""Error rate and deviation over repeats of k-means."""

RUN_TIMES: dict[str, dict[str, float]] = {
    "Gaussian, m = 2": {"iris": 6.99e-5, "spine": 4.05e-4, "ovarian": 2.18e-4, "hopkins155": 4.82e-2},
    "Gaussian, ours, m ≥ 4": {"iris": 6.05e-5, "spine": 4.28e-4, "ovarian": 2.41e-4, "hopkins155": 5.22e-2},
    "Gaussian, max": {"iris": 1.57e-3, "spine": 1.54e-2, "ovarian": 4.31e-3, "hopkins155": 3.69},
    "Gaussian, affine subspace": {"iris": 9.16e-4, "spine": 7.14e-3, "ovarian": 2.70e-2, "hopkins155": 41.2},
    "Gaussian, d^{H−2}": {"iris": 6.12e-2, "spine": 0.215, "ovarian": 0.101, "hopkins155": 12.2},
    "Polynomial, m = 2": {"iris": 3.94e-5, "spine": 1.11e-4, "ovarian": 7.29e-5, "hopkins155": 2.69e-2},
    "Polynomial, ours, m ≥ 4": {"iris": 3.11e-5, "spine": 6.73e-5, "ovarian": 1.07e-4, "hopkins155": 2.20e-2},
    "Polynomial, max": {"iris": 1.57e-3, "spine": 1.54e-2, "ovarian": 4.31e-3, "hopkins155": 3.69},
    "Polynomial, dot product": {"iris": 9.16e-4, "spine": 7.14e-3, "ovarian": 2.70e-2, "hopkins155": 41.2},
}
"""Seconds, as printed; the last two rows repeat those of the max and affine models."""

INHOMOGENEOUS: dict[str, dict[str, tuple[float, float | None]]] = {
    "own splitting, sampled": {
        "iris": (0.4822, 0.0113),
        "spine": (0.3284, 0.0067),
        "ovarian": (0.3952, 0.0000),
        "hopkins155": (0.4000, None),
    },
    "d^inh, sampled": {
        "iris": (0.0853, 0.0645),
        "spine": (0.3026, 0.0539),
        "ovarian": (0.1111, 0.0000),
        "hopkins155": (0.0732, None),
    },
    "ours, m = 4": {
        "iris": (0.0723, 0.0319),
        "spine": (0.2806, 0.0000),
        "ovarian": (0.0841, 0.0000),
        "hopkins155": (0.1112, None),
    },
    "ours, best m": {
        "iris": (0.0697, 0.0033),
        "spine": (0.2806, 0.0000),
        "ovarian": (0.0841, 0.0000),
        "hopkins155": (0.0927, None),
    },
}

DATA_SETS: dict[str, tuple[int, float]] = {
    "iris": (150, 4),
    "spine": (310, 6),
    "ovarian": (216, 100),
    "hopkins155": (45850, 89.32),
}
"""Points, and dimensions (for Hopkins155 the sum and the mean over the sequences)."""

PROTOCOL_ERROR = {2: 0.0140, 3: 0.0406, 0: 0.020}
"""Li and Milenkovic's own error rates on Hopkins155: two motions, three, all."""
