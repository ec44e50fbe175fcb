import pytest


@pytest.fixture
def write(tmp_path):
    """Writes a file of this name, and gives its path."""

    def write(content, name="papers.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
