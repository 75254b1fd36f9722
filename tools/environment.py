"""Everything that has to be there before the build: Python packages, npm packages, browsers.

Standard library only: this runs before anything is installed. Each step leaves a stamp, so that a second
run looks and goes on.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.locking import exclusive

OLDEST_NODE = 20
# Newer Pythons bring the current pyodide-build; 3.11 is served by an older one.
PREFERRED_PYTHON = (3, 12)
OLDEST_PYTHON = (3, 11)

_PROBE = """
import json, sys
import ensurepip, sqlite3, ssl, venv
sqlite3.connect(":memory:").execute("CREATE VIRTUAL TABLE t USING fts5(x)")
final = sys.version_info.releaselevel == "final" and sys.implementation.name == "cpython"
print(json.dumps([final, *sys.version_info[:3]]))
"""


class MissingError(Exception):
    """A tool is missing; the message names it and the way to get it."""


def say(message: str) -> None:
    """Tell the person at the terminal what is being done."""
    print(f"build: {message}", flush=True)


def venv_python(root: Path) -> Path:
    """Return the interpreter of the project's virtual environment."""
    folder = root / ".venv"
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def prepare(root: Path, *, browsers: Sequence[str] = ()) -> Path:
    """Set up what is missing, these browsers too, and return the interpreter that has the packages.

    Raises:
        MissingError: a tool that this script cannot install itself is missing.
    """
    with exclusive(root / ".cache" / "environment.lock"):
        python = _prepare_python(root)
        _prepare_node(root)
        _prepare_browsers(root, python, browsers)
    return python


def digest(*paths: Path) -> str:
    """Return one sha256 over the contents of several files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def run(command: list[str], *, cwd: Path, failure: str, env: dict[str, str] | None = None) -> str:
    """Run a tool and return what it printed.

    Raises:
        MissingError: it failed; the message is `failure` with what the tool said last.
    """
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(line[:400] for line in done.stdout.strip().splitlines()[-30:])
        raise MissingError(f"{failure}\n{tail}")
    return done.stdout


def _python_candidates() -> Iterator[str]:
    """Yield interpreters that may be on this machine, in no particular order."""
    for minor in range(12, 20):
        found = shutil.which(f"python3.{minor}")
        if found:
            yield found
    for name in ("python3", "python"):
        found = shutil.which(name)
        if found:
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in sorted(pyenv.glob("3.*")):
        yield str(version / "bin" / "python")
    uv = shutil.which("uv")
    if uv:
        found = subprocess.run(
            [uv, "python", "find", "--no-project", ">=3.12"],
            capture_output=True,
            encoding="utf-8",
            check=False,
        ).stdout.strip()
        if found:
            yield found
    launcher = shutil.which("py") if os.name == "nt" else None
    if launcher:
        listed = subprocess.run([launcher, "-0p"], capture_output=True, encoding="utf-8", check=False).stdout
        for line in listed.splitlines():
            if line.strip():
                yield line.split()[-1]


def _probe(python: str) -> tuple[int, int, int] | None:
    """Return the version of an interpreter that can carry the build, None for any other."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, encoding="utf-8", timeout=30, check=False
        )
        final, *version = json.loads(done.stdout) if done.returncode == 0 else (False, 0, 0, 0)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return (version[0], version[1], version[2]) if final else None


def find_python() -> tuple[str, tuple[int, int, int]]:
    """Return the newest interpreter from 3.12 on, else the one that runs this.

    Raises:
        MissingError: none can make a virtual environment with SQLite's full-text search.
    """
    here = getattr(sys, "_base_executable", None) or sys.executable
    found: dict[str, tuple[int, int, int]] = {}
    for candidate in dict.fromkeys([here, *_python_candidates()]):
        version = _probe(candidate)
        if version is not None and version >= OLDEST_PYTHON:
            found[candidate] = version
    newer = {path: version for path, version in found.items() if version >= PREFERRED_PYTHON}
    usable = newer or found
    if not usable:
        raise MissingError(
            "no Python >= 3.11 with venv, ssl and SQLite's FTS5 was found; "
            "get it from python.org, or on Debian: apt-get install python3-venv"
        )
    best = max(usable, key=lambda path: usable[path])
    return best, usable[best]


def _prepare_python(root: Path) -> Path:
    """Make .venv with the pinned packages, unless its stamp says that it has them."""
    python = venv_python(root)
    requirements = root / "tools" / "requirements.txt"
    stamp = root / ".venv" / "py-memory.stamp"
    wanted = digest(requirements)
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    base, version = find_python()
    say(f"making .venv with Python {'.'.join(map(str, version))} ({base})")
    shutil.rmtree(root / ".venv", ignore_errors=True)
    run([base, "-m", "venv", str(root / ".venv")], cwd=root, failure="could not make .venv")
    say("installing Python packages (tools/requirements.txt)")
    run(
        [str(python), "-m", "pip", "install", "-qq", "--require-hashes", "-r", str(requirements)],
        cwd=root,
        failure="pip could not install tools/requirements.txt; is the network reachable?",
        env={"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
    )
    stamp.write_text(wanted, encoding="utf-8")
    return python


def find_tool(name: str, advice: str) -> str:
    """Return the path of a program.

    Raises:
        MissingError: it is not on the path; `advice` says how to get it.
    """
    found = shutil.which(name)
    if not found:
        raise MissingError(f"{name} is missing; {advice}")
    return found


def _prepare_node(root: Path) -> None:
    """Install the npm packages of package-lock.json, unless the stamp says that they are there."""
    advice = "get Node.js 20 or newer from nodejs.org, or on Debian: apt-get install nodejs npm"
    node = find_tool("node", advice)
    lock = root / "package-lock.json"
    stamp = root / "node_modules" / "py-memory.stamp"
    wanted = digest(lock, root / "package.json")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    version = run([node, "--version"], cwd=root, failure="node does not run").strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST_NODE:
        raise MissingError(f"node is {version}, too old; {advice}")
    npm = find_tool("npm", advice)
    say(f"installing npm packages with Node.js {version} (package-lock.json)")
    run(
        [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=root,
        failure="npm could not install package-lock.json; is the network reachable?",
    )
    stamp.write_text(wanted, encoding="utf-8")


def find_chromium(root: Path) -> str | None:
    """Return an installed Chromium or Chrome, Playwright's own as the last choice, or None."""
    chosen = os.environ.get("PY_MEMORY_CHROMIUM")
    if chosen:
        return chosen
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    programs = [
        Path(os.environ[name]) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)") if name in os.environ
    ]
    for path in (
        Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
        Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
        *(folder / "Google/Chrome/Application/chrome.exe" for folder in programs),
        *(folder / "Microsoft/Edge/Application/msedge.exe" for folder in programs),
    ):
        if path.exists():
            return str(path)
    own = root / ".cache" / "chromium.path"
    if own.exists():
        path = Path(own.read_text(encoding="utf-8"))
        return str(path) if path.exists() else None
    return None


def find_firefox() -> str | None:
    """Return an installed Firefox, the ESR before any other, or None."""
    chosen = os.environ.get("PY_MEMORY_FIREFOX")
    if chosen:
        return chosen
    for name in ("firefox-esr", "firefox"):
        found = shutil.which(name)
        if found:
            return found
    path = Path("/Applications/Firefox.app/Contents/MacOS/firefox")
    return str(path) if path.exists() else None


def find_webkit() -> str | None:
    """Return the driver of WebKitGTK, or None where it or the screen for it (Xvfb) is missing."""
    return shutil.which("WebKitWebDriver") if shutil.which("Xvfb") else None


def engines_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the engines that `test` needs with these arguments: the one of `--engine`, or all."""
    chosen = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    chosen.add_argument("--engine")
    name = chosen.parse_known_args(list(arguments))[0].engine
    return (name,) if name in BROWSERS else tuple(BROWSERS)


@dataclass(frozen=True)
class Browser:
    """A browser for the tests: how it is found, and where it comes from when it is not there."""

    find: Callable[[Path], str | None]
    packages: tuple[str, ...]
    advice: str


BROWSERS = {
    "chromium": Browser(
        find_chromium,
        ("chromium",),
        "Chromium is missing; install it or Chrome (on Debian: sudo apt-get install chromium)",
    ),
    "firefox": Browser(
        lambda _: find_firefox(),
        ("firefox-esr",),
        "Firefox is missing; install it (on Debian: sudo apt-get install firefox-esr),"
        " or test without it: build.py test --engine chromium",
    ),
    "webkit": Browser(
        lambda _: find_webkit(),
        ("webkit2gtk-driver", "libwebkit2gtk-4.1-0", "xvfb"),
        "WebKitWebDriver or Xvfb is missing; testing in WebKit needs Linux with WebKitGTK (on Debian: sudo"
        " apt-get install webkit2gtk-driver libwebkit2gtk-4.1-0 xvfb),"
        " or test without it: build.py test --engine chromium",
    ),
}


def _prepare_browsers(root: Path, python: Path, names: Sequence[str]) -> None:
    """Install the browsers that are not there.

    Raises:
        MissingError: there is no way to install one of them from here.
    """
    missing = [BROWSERS[name] for name in names if not BROWSERS[name].find(root)]
    apt = shutil.which("apt-get")
    if missing and apt and hasattr(os, "geteuid") and os.geteuid() == 0:
        packages = [package for browser in missing for package in browser.packages]
        say(f"installing browsers (apt-get install {' '.join(packages)})")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        advice = missing[0].advice
        run([apt, "-qq", "update"], cwd=root, failure=advice, env=quiet)
        install = [apt, "-qq", "-y", "--no-install-recommends", "install", *packages]
        run(install, cwd=root, failure=advice, env=quiet)
    elif BROWSERS["chromium"] in missing:
        _install_own_chromium(root, python)
    for browser in missing:
        if not browser.find(root):
            raise MissingError(browser.advice)


def _install_own_chromium(root: Path, python: Path) -> None:
    say("installing Chromium (playwright install chromium)")
    advice = BROWSERS["chromium"].advice
    run([str(python), "-m", "playwright", "install", "chromium"], cwd=root, failure=advice)
    ask = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as p: print(p.chromium.executable_path)"
    )
    where = run([str(python), "-c", ask], cwd=root, failure=advice).strip()
    (root / ".cache" / "chromium.path").write_text(where, encoding="utf-8")
