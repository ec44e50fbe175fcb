"""Documents must not name tests that do not exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_test_named_in_the_documents_exists():
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    texts = (document.read_text(encoding="utf-8") for document in ROOT.glob("docs/*.md"))
    named = {name for text in texts for name in re.findall(r"`(test_\w+)`", text)}
    assert "test_theorem_1_both_ways" in named
    assert named <= defined, named - defined
