"""The script that installs environments: pip's settings for uv, and pip if uv does not work."""

import importlib.util
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "install.py"


@pytest.fixture
def install():
    if not SCRIPT.exists():
        pytest.skip("the script is not installed with the package")
    spec = importlib.util.spec_from_file_location("install", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_settings_of_pip_are_handed_on(install, monkeypatch):
    pip = "global.cert='/c.pem'\nglobal.extra-index-url='a b'\ninstall.find-links='/x\\n/y'\n:env:.cert='/d.pem'\nodd"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=pip))
    settings = install.pip_settings()
    assert settings == {"cert": "/d.pem", "extra-index-url": "a b", "find-links": "/x\n/y"}
    monkeypatch.setattr(install.os, "environ", {"UV_HTTP_TIMEOUT": "7"})
    found = install.uv_environment({**settings, "index-url": "i", "timeout": "9", "no-index": "true"})
    assert found == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_DEFAULT_INDEX": "i",
        "SSL_CERT_FILE": "/d.pem",
        "UV_HTTP_TIMEOUT": "7",
        "UV_EXTRA_INDEX_URL": "a b",
        "UV_FIND_LINKS": "/x,/y",
        "UV_NO_INDEX": "1",
    }


@pytest.mark.parametrize("failing", ["uv==", "pip install --quiet --python"])
def test_pip_installs_if_uv_cannot_be_had_or_fails(install, failing, monkeypatch, capsys):
    ran = []

    def run(command, **_):
        ran.append(" ".join(command[2:]))
        failed = failing in ran[-1] or ("uv --version" in ran[-1] and failing == "uv==")
        return SimpleNamespace(returncode=int(failed), stdout="", stderr="no such index")

    monkeypatch.setattr(subprocess, "run", run)
    assert not install.by_uv(["--group", "test"])
    assert install.by_pip(["--group", "test"]) == 0
    assert ran[-2:] == ["pip install --quiet --upgrade pip==26.3", "pip install --quiet --group test"]
    assert ("no such index" in capsys.readouterr().err) == (failing != "uv==")
