"""Every exception in words, with its exit code."""

from biclique.cli.output import EXIT_DATA, EXIT_FAILURE, EXIT_MEMORY, EXIT_USAGE
from biclique.exceptions import BicliqueError, MemoryLimitError, ParameterError

TRACEBACK = "BICLIQUE_TRACEBACK"
"""The environment variable that shows where an error came from."""
KINDS: tuple[tuple[type[BaseException], int, str], ...] = (
    (MemoryLimitError, EXIT_MEMORY, "{text}"),
    (MemoryError, EXIT_MEMORY, "not enough memory{why}: take fewer rows or columns, or free some"),
    (ParameterError, EXIT_USAGE, "{text}"),
    (NotImplementedError, EXIT_USAGE, "{text}"),
    (ValueError, EXIT_DATA, "{text}"),
    (RecursionError, EXIT_DATA, "the data are nested too deeply to be read"),
    (OverflowError, EXIT_DATA, "a number in the options or the data is too large{why}"),
    (OSError, EXIT_FAILURE, "{text}"),
    (BicliqueError, EXIT_FAILURE, "{text}"),
    (BaseException, EXIT_FAILURE, f"{{what}}; this is a bug; run with {TRACEBACK}=1 to see where"),
)
"""The first kind that an error is of gives its exit code and the words around its text."""


def in_words(error: BaseException) -> tuple[str, int]:
    """The message and the exit code."""
    text, name = str(error), type(error).__name__
    if isinstance(error, UnicodeEncodeError):
        text = f"{error.object[error.start : error.end]!r} cannot be written as {error.encoding}"
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        text = error.strerror
    code, words = next((code, words) for kind, code, words in KINDS if isinstance(error, kind))
    return words.format(text=text, why=f" ({text})" if text else "", what=f"{name}: {text}" if text else name), code
