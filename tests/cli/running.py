"""A command in this process."""

from biclique.cli import main


def run(capsys, *arguments):
    """Its exit code, and what it printed on standard output and on standard error."""
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err
