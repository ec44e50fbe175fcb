"""Code in the pages works: Python that is no doctest (``make check`` runs those) and every command line."""

import contextlib
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.cli.run import make_parser
from tests.optional import Optional

ROOT = Path(__file__).parent.parent
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))}
BLOCKS = [
    (page, code)
    for page, text in PAGES.items()
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    if ">>>" not in code
]
ELSEWHERE = ("distributed", 'device="cuda"', "bertopic")
"""Words of code that needs what is not here, a cluster, a GPU or BERTopic: it is only compiled."""

pd = Optional("pandas")


def given():
    """What a reader has: rows, new rows, a frame with texts, dates and gaps, an image."""
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(20, 4)) + 8 * np.eye(5)[group, :4] for group in range(5)])
    frame = pd.DataFrame(
        {
            "customer": [f"c{row}" for row in range(60)],
            "city": np.repeat(["Oslo", "Rome", "Bern"], 20),
            "joined": pd.date_range("2024-01-01", periods=60),
            "age": [np.nan, *np.repeat([20.0, 40.0, 60.0], 20)[1:]],
        }
    )
    image = (
        np.kron(np.array([[0.0, 0.3], [0.6, 0.9]]), np.ones((7, 8)))[..., None] + random.normal(size=(14, 16, 3)) / 50
    )
    model = {"BicliqueSpectralClustering": BicliqueSpectralClustering}
    return {"X": X, "X_new": X[:3] + 0.1, "frame": frame, "image": image, **model}


@pytest.mark.parametrize(("page", "code"), BLOCKS, ids=[page for page, _ in BLOCKS])
def test_python_of_the_pages_runs(page, code, tmp_path, monkeypatch):
    compiled = compile(code, page, "exec")
    if any(word in code for word in ELSEWHERE):
        return
    monkeypatch.chdir(tmp_path)  # some write files
    exec(compiled, given())


def test_what_is_only_compiled_is_still_there():
    assert all(any(word in code for _, code in BLOCKS) for word in ELSEWHERE)


def command_lines():
    """Lines of the pages that begin with biclique, or with a dollar before it."""
    lines = [(page, line) for page, text in PAGES.items() for line in text.splitlines()]
    found = [
        (page, re.fullmatch(r"(?:\$ |    )?biclique ((?:cluster|predict|report|hypergraph) .*)", line))
        for page, line in lines
    ]
    return [(page, match[1]) for page, match in found if match and "…" not in match[1]]


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_command_lines_of_the_pages_are_understood(page, line):
    words = shlex.split(line, comments=True)
    shown = contextlib.suppress(SystemExit) if line.endswith("--help") else contextlib.nullcontext()
    with shown:
        assert make_parser(words[0]).parse_args(words)


def test_there_are_command_lines():
    assert {page for page, _ in command_lines()} >= {"README.md", "tutorial.md", "scale.md", "hypergraphs.md"}


SCRIPT = re.compile(r"python ((?:benchmarks|examples)/\w+\.py)((?: (?:--)?[\w.=-]+)*)")


@pytest.mark.parametrize("page", PAGES)
def test_options_of_scripts_that_pages_name_exist(page):
    for script, rest in SCRIPT.findall(PAGES[page]):
        text = (ROOT / script).read_text(encoding="utf-8")
        for name in re.findall(r"--[\w-]+", rest):
            assert f'"{name}"' in text, (script, name)
