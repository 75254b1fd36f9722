"""The test command: style, types, then every test; a summary in the end, whatever failed before."""

import subprocess
import sys
import time
from collections.abc import Callable

from tools import dist
from tools.environment import MissingError, digest, find_tool, run, say
from tools.project import Project


def run_all(project: Project, arguments: list[str]) -> int:
    """Run every check, pytest with these arguments among them; 0 when all passed."""
    steps: list[tuple[str, Callable[[], bool]]] = [
        ("build", lambda: _build(project)),
        ("ruff check", lambda: _python(project, "ruff", "check")),
        ("ruff format", lambda: _python(project, "ruff", "format", "--check")),
        ("mypy", lambda: _python(project, "mypy")),
    ]
    for config in sorted(
        [*project.root.glob("web/tsconfig.json"), *project.root.glob("tests/types/tsconfig.json")]
    ):
        name = config.relative_to(project.root).as_posix()
        steps.append((f"tsc -p {name}", lambda name=name: _tsc(project, name)))  # type: ignore[misc]
    steps.append(("pytest", lambda: _python(project, "pytest", *arguments)))

    results: list[tuple[str, bool, float]] = []
    for name, step in steps:
        say(name)
        start = time.monotonic()
        passed = step()
        results.append((name, passed, time.monotonic() - start))
        if name == "build" and not passed:
            # Tests of an older dist/ would say nothing about these sources.
            break
    print()
    for name, passed, seconds in results:
        print(f"build: {'passed' if passed else 'FAILED'}  {name} ({seconds:.1f} s)")
    return 0 if all(passed for _, passed, _ in results) else 1


def _build(project: Project) -> bool:
    try:
        dist.build(project)
        prepare_pyodide_wheels(project)
    except MissingError as missing:
        print(f"build: {missing}")
        return False
    return True


def _python(project: Project, module: str, *arguments: str) -> bool:
    return (
        subprocess.run([sys.executable, "-m", module, *arguments], cwd=project.root, check=False).returncode
        == 0
    )


def _tsc(project: Project, config: str) -> bool:
    node = find_tool("node", "get Node.js 20 or newer from nodejs.org")
    compiler = project.packages / "typescript" / "bin" / "tsc"
    command = [node, str(compiler), "--noEmit", "-p", config]
    return subprocess.run(command, cwd=project.root, check=False).returncode == 0


def prepare_pyodide_wheels(project: Project) -> None:
    """Fetch the wheels that tests load into Pyodide (micropip, pytest, hypothesis), unless they are there.

    Raises:
        MissingError: pip could not fetch them.
    """
    requirements = project.root / "tools" / "requirements-pyodide.txt"
    folder = project.cache / "pyodide-wheels"
    stamp = folder / "stamp"
    wanted = digest(requirements)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    say("fetching wheels for the tests in Pyodide (tools/requirements-pyodide.txt)")
    pip = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--require-hashes"]
    # Pure wheels only: what they may need of the system, Pyodide's Python 3.14 has to have.
    target = ["--only-binary", ":all:", "--python-version", "3.14", "--platform", "any"]
    target += ["--implementation", "py", "--abi", "none"]
    run(
        [*pip, *target, "-r", str(requirements), "-d", str(folder)],
        cwd=project.root,
        failure="pip could not fetch tools/requirements-pyodide.txt; is the network reachable?",
        env={"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
    )
    stamp.write_text(wanted, encoding="utf-8")
