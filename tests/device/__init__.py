"""Where tiles are tested. Without a GPU Triton's interpreter stands in: Triton reads this when it is first imported."""

import os
from importlib import import_module
from importlib.util import find_spec

from tests.optional import needs

GPU = find_spec("torch") is not None and import_module("torch").cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
if not GPU:
    os.environ["TRITON_INTERPRET"] = "1"
fused = needs("triton" if find_spec("torch") else "torch")
