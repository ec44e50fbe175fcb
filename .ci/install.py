"""Install into the environment of this Python: python .ci/install.py ARGUMENTS OF PIP INSTALL

uv does it in about a tenth of pip's time, from the same places: pip's settings are handed on. If uv cannot be had, or
fails, pip installs, and says what is wrong.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys

PIP = [sys.executable, "-m", "pip"]
UV, NEW_PIP = "uv==0.13.8", "pip==26.3"


def pip_settings() -> dict[str, str]:
    """Settings of pip by name, from its files and the environment; later ones win."""
    lines = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout.splitlines()
    found = {}
    for line in lines:
        name, _, value = line.partition("=")
        if value.startswith(("'", '"')):
            found[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    return found


def uv_environment(settings: dict[str, str]) -> dict[str, str]:
    """The same settings for uv. Of all places the best version counts, as for pip."""
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "cert": "SSL_CERT_FILE",
        "timeout": "UV_HTTP_TIMEOUT",
        "default-timeout": "UV_HTTP_TIMEOUT",
    }
    found |= {ours: settings[theirs] for theirs, ours in names.items() if theirs in settings}
    if "extra-index-url" in settings:
        found["UV_EXTRA_INDEX_URL"] = " ".join(settings["extra-index-url"].split())
    if "find-links" in settings:
        found["UV_FIND_LINKS"] = ",".join(settings["find-links"].split())
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        found["UV_NO_INDEX"] = "1"
    return {**found, **os.environ}  # who sets uv knows better


def works(*command: str) -> bool:
    """Whether a module of this Python runs without an error; what it says is not shown."""
    return subprocess.run([sys.executable, "-m", *command], capture_output=True, check=False).returncode == 0


def by_uv(arguments: list[str]) -> bool:
    """Install by uv; False if that did not work."""
    if not works("uv", "--version") and not works("pip", "install", "--quiet", UV):
        return False
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, *arguments]
    found = subprocess.run(command, env=uv_environment(pip_settings()), capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"uv did not install ({found.stderr.strip()[-300:]}); pip does.", file=sys.stderr)
    return found.returncode == 0


def by_pip(arguments: list[str]) -> int:
    """Install by pip, which knows groups from 25.1 on."""
    if subprocess.run([*PIP, "install", "--quiet", "--upgrade", NEW_PIP], check=False).returncode:
        return 1
    return subprocess.run([*PIP, "install", "--quiet", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(0 if by_uv(sys.argv[1:]) else by_pip(sys.argv[1:]))
