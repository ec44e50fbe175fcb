"""Results that print as text: short at a prompt, whole in a notebook."""

from html import escape


class Readable:
    """A result whose text is ``str(result)``: its first line is shown at a prompt, all of it in a notebook."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {str(self).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
