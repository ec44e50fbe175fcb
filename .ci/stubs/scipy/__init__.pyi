"""SciPy has no types: what is missing here may be anything."""

from typing import Any

def __getattr__(name: str) -> Any: ...
