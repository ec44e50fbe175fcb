"""``biclique info``: what this installation and this machine have, for a report of a problem or before a long run."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from threadpoolctl import threadpool_info

from biclique import __version__
from biclique.cli.options import Command, Json
from biclique.cli.output import line
from biclique.runtime.memory import format_bytes, free_memory, total_memory
from biclique.runtime.threads import count_threads

CORE = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "tqdm", "skops")
EXTRAS = {
    "tables": ("pandas", "pyarrow", "openpyxl"),
    "dask": ("dask", "distributed", "zarr"),
    "plot": ("matplotlib",),
    "neighbors": ("faiss-cpu",),
    "fourier": ("finufft",),
    "gpu": ("torch", "triton"),
    "hypergraph": ("xgi", "hypergraphx"),
}
EXAMPLES = """\
examples:
  biclique info
  biclique info --json > machine.json
"""


def run(options: Json) -> None:
    options.show(machine(), _print)


def _print(facts: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    line(f"biclique {facts['biclique']}, Python {facts['python']}, {facts['system']}")
    line(f"packages: {versions}")
    line(f"threads: {facts['threads']} ({facts['cores']} cores)")
    for pool in facts["blas"]:
        line(f"BLAS: {pool['name']} {pool['version']}, {pool['architecture'] or 'CPU kind unknown'}")
    line(f"CPU features: {' '.join(facts['cpu_features']) or 'unknown'}")
    total = facts["memory_bytes"]
    of_all = f" of {format_bytes(total)}" if total else ""
    line(f"memory: {format_bytes(facts['free_memory_bytes'])} free{of_all}")
    line(f"devices: {', '.join(facts['devices']) or 'none besides the CPU'}")
    for extra, packages in facts["extras"].items():
        there = ", ".join(f"{name} {version or 'missing'}" for name, version in packages.items())
        missing = "" if all(packages.values()) else f" (pip install 'biclique[{extra}]')"
        line(f"extra {extra}: {there}{missing}")


def machine() -> dict[str, Any]:
    """The facts, by stable keys."""
    import_module("scipy.linalg")  # its BLAS is loaded when it is first used
    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return {
        "biclique": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in CORE},
        "threads": count_threads(None),
        "cores": os.cpu_count(),
        "blas": [
            {
                "name": pool.get("internal_api"),
                "version": pool.get("version"),
                "architecture": pool.get("architecture"),
                "threads": pool.get("num_threads"),
            }
            for pool in pools
        ],
        "cpu_features": cpu_features(),
        "free_memory_bytes": free_memory(),
        "memory_bytes": total_memory(),
        "devices": devices(),
        "extras": {extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def cpu_features() -> list[str]:
    """What NumPy uses of this CPU, such as AVX2."""
    for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        found = getattr(sys.modules.get(name), "__cpu_features__", None)
        if found:
            return sorted(feature for feature, there in found.items() if there)
    return []


def devices() -> list[str]:
    """The GPUs that PyTorch finds, if it is installed."""
    if find_spec("torch") is None:
        return []
    try:
        torch = import_module("torch")
        gpus = [torch.cuda.get_device_properties(j) for j in range(torch.cuda.device_count())]
        has_mps = getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available()
        shown = [f"cuda:{j} {gpu.name} ({format_bytes(gpu.total_memory)})" for j, gpu in enumerate(gpus)]
        return [*shown, "mps"] if has_mps else shown
    except Exception as error:  # a broken driver can raise anything, and is worth a line here
        return [f"PyTorch cannot say ({error})"]


add_to = Command(run, Json, "What this installation and this machine have.", EXAMPLES).add_to
