"""Runs Python as on a CPU one level below this one: ``python .ci/lower_cpu.py -m pytest tests/gram``.

Last digits depend on the CPU: OpenBLAS and NumPy choose their loops by what it can do. The level now is that of
OpenBLAS. OPENBLAS_CORETYPE sets the level below; NPY_DISABLE_CPU_FEATURES switches off what that level lacks in NumPy.
"""

import json
import os
import subprocess
import sys

BELOW = {
    **dict.fromkeys(["skylakex", "cooperlake", "sapphirerapids"], "Haswell"),  # AVX-512
    **dict.fromkeys(["haswell", "zen", "excavator"], "Sandybridge"),  # AVX2
}
KEPT = {
    "Haswell": lambda feature: not feature.startswith(("AVX512", "X86_V4")),
    "Sandybridge": lambda feature: feature.startswith(("SSE", "SSSE")) or feature in ("POPCNT", "AVX"),
}
"""The features of NumPy, of those that it found and can do without, that a CPU of this level has."""

LOOK = """
import json, numpy, scipy.linalg, threadpoolctl
levels = {i["architecture"] for i in threadpoolctl.threadpool_info() if i.get("internal_api") == "openblas"}
found = numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
print(json.dumps([sorted(levels), found]))
"""


def look(environment):
    """The levels of OpenBLAS (NumPy and SciPy each bring one), and NumPy's features above its baseline."""
    done = subprocess.run([sys.executable, "-c", LOOK], env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main(arguments):
    levels, found = look(os.environ)
    below = {BELOW[level.lower()] for level in levels if level.lower() in BELOW}
    if len(below) != 1:
        print(f"CPU level {' and '.join(levels) or 'unknown'}: no level below it is known, nothing is run")
        return 0
    (level,) = below
    off = [feature for feature in found if not KEPT[level](feature)]
    environment = {**os.environ, "OPENBLAS_CORETYPE": level, "NPY_DISABLE_CPU_FEATURES": ",".join(off)}
    now, left = look(environment)
    if now != [level] or set(off) & set(left):
        print(f"CPU level {level} was asked for, without {off}; got {now} with {left}")
        return 1
    print(f"CPU level {' and '.join(levels)} -> {level}; NumPy without {', '.join(off) or 'nothing'}", flush=True)
    return subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
