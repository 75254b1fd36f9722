"""How build.py sets itself up: it finds what is there, names what is missing, and does nothing twice."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tools import environment
from tools.environment import MissingError
from tools.locking import exclusive
from tools.project import Project
from tools.wheel import build_wheel

pytestmark = [
    pytest.mark.cpython_only,
    pytest.mark.skipif(os.name == "nt", reason="stands in for programs with shell scripts"),
]


def program(folder: Path, name: str, script: str) -> Path:
    """Put a small program on a path of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the only one where programs are looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.delenv("PY_MEMORY_CHROMIUM", raising=False)
    monkeypatch.delenv("PY_MEMORY_FIREFOX", raising=False)
    return folder


def test_the_newest_python_from_3_12_on_is_chosen(path: Path, tmp_path: Path):
    program(path, "python3.12", "echo '[true, 3, 12, 9]'")
    program(path, "python3.14", "echo '[true, 3, 14, 1]'")
    # A pre-release, one without full-text search, and a shim that leads nowhere.
    program(path, "python3.15", "echo '[false, 3, 15, 0]'")
    program(path, "python3.16", "exit 1")
    in_pyenv = program(
        tmp_path / "pyenv" / "versions" / "3.14.2" / "bin", "python", "echo '[true, 3, 14, 2]'"
    )
    assert environment.find_python() == (str(in_pyenv), (3, 14, 2))


def test_python_3_11_serves_where_there_is_no_newer(path: Path, monkeypatch: pytest.MonkeyPatch):
    here = program(path, "old", "echo '[true, 3, 11, 7]'")
    program(path, "python3", "echo '[true, 3, 10, 13]'")
    monkeypatch.setattr(sys, "_base_executable", str(here))
    assert environment.find_python() == (str(here), (3, 11, 7))


def test_no_usable_python_is_said_in_one_line(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "_base_executable", str(program(path, "old", "exit 1")))
    with pytest.raises(MissingError) as caught:
        environment.find_python()
    assert "python3-venv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["node", "npm"])
def test_a_missing_tool_is_named_with_the_way_to_get_it(path: Path, tmp_path: Path, missing: str):
    for name in {"node", "npm"} - {missing}:
        program(path, name, "echo v22.0.0")
    checkout(tmp_path)
    with pytest.raises(MissingError, match=rf"^{missing} is missing; get Node\.js 20 .*nodejs\.org.*$"):
        environment._prepare_node(tmp_path)


def test_an_old_node_is_refused(path: Path, tmp_path: Path):
    program(path, "node", "echo v18.19.0")
    checkout(tmp_path)
    with pytest.raises(MissingError, match=r"node is v18\.19\.0, too old"):
        environment._prepare_node(tmp_path)


def checkout(root: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        (root / name).write_text("{}", encoding="utf-8")


def test_npm_packages_are_installed_once_and_again_when_the_lock_changes(path: Path, tmp_path: Path):
    program(path, "node", "echo v20.1.0")
    program(path, "npm", '/bin/mkdir -p node_modules; echo "$1" >> calls')
    checkout(tmp_path)
    environment._prepare_node(tmp_path)
    environment._prepare_node(tmp_path)
    assert (tmp_path / "calls").read_text() == "ci\n"
    (tmp_path / "package-lock.json").write_text('{"changed": true}', encoding="utf-8")
    environment._prepare_node(tmp_path)
    assert (tmp_path / "calls").read_text() == "ci\nci\n"


def test_an_installed_browser_is_used(path: Path, tmp_path: Path):
    assert environment.find_chromium(tmp_path) in {
        None,
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    }
    chrome = program(path, "google-chrome", "exit 0")
    assert environment.find_chromium(tmp_path) == str(chrome)
    chromium = program(path, "chromium", "exit 0")
    assert environment.find_chromium(tmp_path) == str(chromium)


def test_as_root_the_browser_comes_from_the_system(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # This apt-get "installs" by making the program appear.
    made = " ".join(
        f"/bin/cp {path}/apt-get {path}/{one};" for one in ("chromium", "firefox-esr", "WebKitWebDriver")
    )
    install = f'case "$*" in *install*) {made}; esac'
    script = f'echo "$*" >> {tmp_path}/calls; {install}'
    program(path, "apt-get", script)
    program(path, "Xvfb", "exit 0")
    environment._prepare_browsers(tmp_path, Path("no-python"), ["chromium", "webkit", "firefox"])
    wanted = "chromium webkit2gtk-driver libwebkit2gtk-4.1-0 xvfb firefox-esr"
    assert (tmp_path / "calls").read_text().splitlines() == [
        "-qq update",
        f"-qq -y --no-install-recommends install {wanted}",
    ]
    environment._prepare_browsers(tmp_path, Path("no-python"), ["chromium", "webkit", "firefox"])
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("chromium", "Chromium is missing; install it"),
        ("firefox", "Firefox is missing; install it"),
        ("webkit", "WebKitWebDriver or Xvfb is missing; testing in WebKit needs Linux"),
    ],
)
def test_a_browser_that_cannot_be_had_is_named(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    python = program(path, "python", "echo no network; exit 1")
    with pytest.raises(MissingError, match=says) as caught:
        environment._prepare_browsers(tmp_path, python, [name])
    assert "apt-get install" in str(caught.value)
    assert name != "chromium" or "no network" in str(caught.value)


def test_a_browser_that_apt_did_not_bring_is_named(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(path, "apt-get", "exit 0")
    with pytest.raises(MissingError, match="Firefox is missing"):
        environment._prepare_browsers(tmp_path, Path("no-python"), ["firefox"])


def test_the_engines_that_a_run_needs():
    assert environment.engines_of(["tests/browser", "-x"]) == ("chromium", "firefox", "webkit")
    assert environment.engines_of(["--engine", "all"]) == ("chromium", "firefox", "webkit")
    assert environment.engines_of(["-q", "--engine=firefox"]) == ("firefox",)
    assert environment.engines_of(["--engine", "webkit", "-k", "x"]) == ("webkit",)


def test_a_failing_pyodide_build_fails_the_build(project: Project, tmp_path: Path):
    shutil.copytree(project.root / "tools", tmp_path / "tools")
    shutil.copytree(project.root / "py_memory", tmp_path / "py_memory")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'py-memory'\n", encoding="utf-8")
    with pytest.raises(MissingError, match="pyodide-build could not build the wheel"):
        build_wheel(Project(tmp_path, project.packages))
    assert not list(tmp_path.rglob("*.whl"))


def test_one_build_waits_for_the_other(tmp_path: Path):
    order = []

    def second():
        with exclusive(tmp_path / "lock"):
            order.append("second")

    with exclusive(tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_second_run_is_quick_and_changes_nothing(project: Project):
    stamps = [project.root / ".venv" / "py-memory.stamp", project.packages / "py-memory.stamp"]
    before = [path.stat().st_mtime_ns for path in stamps]
    start = time.monotonic()
    environment.prepare(project.root, browsers=["chromium", "firefox", "webkit"])
    assert time.monotonic() - start < 2
    assert [path.stat().st_mtime_ns for path in stamps] == before


def test_an_unknown_command_is_answered_with_the_known_ones(project: Project):
    done = subprocess.run(
        [sys.executable, "build.py", "biuld"],
        cwd=project.root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2
    assert "no command 'biuld'" in done.stdout
    assert all(command in done.stdout for command in ("build", "serve", "test", "bench"))


def test_no_address_of_a_registry_is_in_the_locks(project: Project):
    for name in (
        "package-lock.json",
        "package.json",
        "tools/requirements.txt",
        "tools/requirements-pyodide.txt",
    ):
        text = (project.root / name).read_text(encoding="utf-8")
        assert "://" not in text, name
