"""The engine's unit tests once more, inside the runtime that pages load, in a worker of the browser."""

import io
import json
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tools.project import Project
from tools.serve import Override, StaticServer

HERE = Path(__file__).parent / "in_pyodide"
# What pytest and hypothesis are made of, as pure wheels.
NEEDED = (
    "hypothesis",
    "iniconfig",
    "packaging",
    "pluggy",
    "pygments",
    "pytest",
    "sortedcontainers",
    "tzdata",
)

RUN = """
(job) => new Promise((resolve, reject) => {
  const worker = new Worker("/runner/worker.mjs", { type: "module" });
  worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.result));
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage(job);
})
"""


def ini(project: Project) -> str:
    """The settings of pytest without those of plugins that Pyodide does not have."""
    settings = tomllib.loads((project.root / "pyproject.toml").read_text(encoding="utf-8"))
    options = settings["tool"]["pytest"]["ini_options"]
    lines = [
        "[pytest]",
        "xfail_strict = true",
        "pythonpath = .",
        f"addopts = {shlex.join(options['addopts'])}",
    ]
    for name in ("markers", "filterwarnings"):
        lines += [f"{name} =", *(f"    {line}" for line in options[name])]
    return "\n".join(lines) + "\n"


def archive_of_tests(project: Project) -> bytes:
    """The engine's tests and their data, without those of the tooling and of the documentation."""
    root = project.root
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("pytest.ini", ini(project))
        for path in sorted((root / "tests").rglob("*")):
            relative = path.relative_to(root)
            if (
                path.is_file()
                and relative.parts[1] not in {"browser", "bench", "types", "conftest.py"}
                and "__pycache__" not in relative.parts
                and not path.name.startswith(("test_build", "test_docs"))
            ):
                archive.write(path, relative.as_posix())
    return packed.getvalue()


def collected_by_cpython(project: Project) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not cpython_only", "tests/unit"],
        cwd=project.root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return {line.strip() for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_engine_passes_its_unit_tests_inside_pyodide(
    project: Project,
    site: StaticServer,
    page: Any,
    pyodide_wheels: Path,
    capsys: pytest.CaptureFixture[str],
):
    site.mounts.update({"/runner/": HERE, "/stock/": project.pyodide, "/wheels/": pyodide_wheels})
    site.overrides["/tests.zip"] = Override(body=archive_of_tests(project))
    wheels = [path.name for path in sorted(pyodide_wheels.glob("*.whl")) if path.name.split("-")[0] in NEEDED]
    assert len(wheels) == len(NEEDED)

    page.set_default_timeout(0)
    page.goto(f"{site.url}/runner/index.html")
    report = json.loads(
        page.evaluate(
            RUN,
            {
                "runtime": f"{site.url}/py-memory/runtime/",
                "wheels": [f"{site.url}/wheels/{name}" for name in wheels],
                "stdlib": f"{site.url}/stock/python_stdlib.zip",
                "tests": f"{site.url}/tests.zip",
                "code": (HERE / "run.py").read_text(encoding="utf-8"),
            },
        )
    )

    assert report["status"] == 0, report["output"][-6000:]
    # The installed wheel was tested, not sources that came along with the tests.
    assert report["package"].endswith("/site-packages/py_memory/__init__.py")
    assert report["platform"] == "emscripten"
    ran = [name for name, outcome in report["outcomes"].items() if outcome == "passed"]
    assert len(ran) > 0
    assert set(report["collected"]) == collected_by_cpython(project)
    with capsys.disabled():
        print(f"\n{len(ran)} engine tests passed inside Pyodide, Python {report['python'].split()[0]}")
