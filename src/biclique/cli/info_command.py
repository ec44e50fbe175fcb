"""``biclique info``: what this installation and this machine have, for a report of a problem or before a long run."""

import os
import platform
import sys
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec

from threadpoolctl import threadpool_info

from biclique import __version__
from biclique.cli.options import Command, Facts, Json, Warned
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


@dataclass(frozen=True, kw_only=True)
class InfoOptions(Json):
    """What this installation and this machine have."""


def run(options: InfoOptions, warned: Warned) -> Facts:  # noqa: ARG001
    """The facts, by stable keys."""
    import_module("scipy.linalg")  # its BLAS is loaded when it is first used
    keys = {"name": "internal_api", "version": "version", "architecture": "architecture", "threads": "num_threads"}
    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return {
        "biclique": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in CORE},
        "threads": count_threads(None),
        "cores": os.cpu_count(),
        "blas": [{name: pool.get(key) for name, key in keys.items()} for pool in pools],
        "cpu_features": cpu_features(),
        "free_memory_bytes": free_memory(),
        "memory_bytes": total_memory(),
        "devices": devices(),
        "extras": {extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()},
    }


def lines(facts: Facts) -> list[str]:
    """The facts as text."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    of_all = f" of {format_bytes(facts['memory_bytes'])}" if facts["memory_bytes"] else ""
    return [
        f"biclique {facts['biclique']}, Python {facts['python']}, {facts['system']}",
        f"packages: {versions}",
        f"threads: {facts['threads']} ({facts['cores']} cores)",
        *(
            f"BLAS: {pool['name']} {pool['version']}, {pool['architecture'] or 'CPU kind unknown'}"
            for pool in facts["blas"]
        ),
        f"CPU features: {' '.join(facts['cpu_features']) or 'unknown'}",
        f"memory: {format_bytes(facts['free_memory_bytes'])} free{of_all}",
        f"devices: {', '.join(facts['devices']) or 'none besides the CPU'}",
        *(_extra_line(extra, packages) for extra, packages in facts["extras"].items()),
    ]


def _extra_line(extra: str, packages: dict[str, str | None]) -> str:
    there = ", ".join(f"{name} {version or 'missing'}" for name, version in packages.items())
    return f"extra {extra}: {there}" + ("" if all(packages.values()) else f" (pip install '.[{extra}]' in a clone)")


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
    except Exception as error:  # a broken driver can raise anything, and is worth a line here
        return [f"PyTorch cannot say ({error})"]
    shown = [f"cuda:{j} {gpu.name} ({format_bytes(gpu.total_memory)})" for j, gpu in enumerate(gpus)]
    return [*shown, *["mps"] * has_mps]


add_to = Command(InfoOptions, run, lines, EXAMPLES).add_to
