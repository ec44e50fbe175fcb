"""SciPy has no types: what is not told here may be anything."""

from typing import Any

def __getattr__(name: str) -> Any: ...
