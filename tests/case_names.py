"""Names of parametrised cases that are the same in every process: pytest-xdist compares them."""

import re


def without_address(value):
    """The text of a value, without the address of a function in it."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
