"""What build.py makes: the wheel, the runtime, dist/ and its manifest, the same every time."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import dist as dist_tools
from tools.project import Project
from tools.runtime import LEAVE_OUT
from tools.wheel import SOURCE_DATE_EPOCH, stage

pytestmark = pytest.mark.cpython_only

OUTSIDE_THE_SOURCES = {".git", ".venv", ".cache", "dist", "node_modules", "__pycache__", ".mypy_cache"}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_in_node(project: Project, folder: Path, python: str) -> str:
    """Boot the built runtime under Node and return what the Python expression gives.

    The wheel is on the path as in the worker, and is loaded by its name in the lockfile, too.
    """
    script = """
        const { readFileSync, readdirSync } = await import("node:fs");
        const [folder, code] = process.argv.slice(1);
        const wheel = folder + "/" + readdirSync(folder).find((name) => name.endsWith(".whl"));
        const { loadPyodide } = await import("file://" + folder + "/pyodide.mjs");
        const pyodide = await loadPyodide({
          indexURL: folder,
          packages: ["py-memory"],
          env: { PYTHONPATH: "/lib/py_memory.whl" },
          fsInit: async (files) => files.writeFile("/lib/py_memory.whl", new Uint8Array(readFileSync(wheel))),
        });
        if (!pyodide.loadedPackages["py-memory"]) throw new Error("the lockfile does not give our package");
        console.log("=" + await pyodide.runPythonAsync(code));
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script, str(folder), python],
        cwd=project.root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.rpartition("=")[2].strip()


def test_the_standard_front_end_makes_the_same_wheel(project: Project, dist: Path, tmp_path: Path):
    stage(project, tmp_path / "elsewhere")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "out", "."],
        cwd=tmp_path / "elsewhere",
        env={**os.environ, "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH},
        capture_output=True,
        check=True,
    )
    made = list((tmp_path / "out").iterdir())
    assert [path.name for path in made] == [project.wheel_name]
    assert sha256(made[0]) == sha256(dist / "py-memory" / project.wheel_name)


def test_the_wheel_holds_the_package_and_nothing_else(project: Project, dist: Path):
    with zipfile.ZipFile(dist / "py-memory" / project.wheel_name) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(f"py_memory-{project.version}.dist-info/METADATA").decode()
    assert {name.split("/")[0] for name in names} == {"py_memory", f"py_memory-{project.version}.dist-info"}
    sources = {
        path.relative_to(project.root).as_posix()
        for path in (project.root / "py_memory").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= set(names)
    assert "py_memory/py.typed" in names
    assert "Requires-Dist" not in metadata


def test_the_lockfile_names_our_wheel_alone_with_its_hash(project: Project, dist: Path):
    runtime = dist / "py-memory" / "runtime"
    lock = json.loads((runtime / "pyodide-lock.json").read_text(encoding="utf-8"))
    stock = json.loads((project.pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    assert lock["info"] == stock["info"]
    assert list(lock["packages"]) == ["py-memory"]
    package = lock["packages"]["py-memory"]
    assert package["imports"] == ["py_memory"]
    assert package["depends"] == []
    assert package["sha256"] == sha256(runtime / package["file_name"])


def test_the_manifest_lists_every_file_with_its_hash_and_size(project: Project, dist: Path):
    home = dist / "py-memory"
    manifest = json.loads((home / "manifest.json").read_text(encoding="utf-8"))
    files = {path.relative_to(home).as_posix(): path for path in home.rglob("*") if path.is_file()}
    del files["manifest.json"]
    assert manifest["version"] == project.version
    assert manifest["files"] == {
        name: {"sha256": sha256(path), "bytes": path.stat().st_size} for name, path in files.items()
    }
    assert {"runtime/pyodide.asm.wasm", "runtime/pyodide-lock.json", project.wheel_name} <= set(files)


def test_dist_has_what_the_sources_have(project: Project, dist: Path):
    for path in (project.root / "web").rglob("*.js"):
        relative = path.relative_to(project.root / "web")
        target = dist / relative if relative.parts[0] == "demo" else dist / "py-memory" / relative
        assert target.read_bytes() == path.read_bytes()
    for name in ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm"):
        assert sha256(dist / "py-memory" / "runtime" / name) == sha256(project.pyodide / name)


def test_the_runtime_boots_from_bytecode_and_has_what_the_engine_needs(project: Project, dist: Path):
    runtime = dist / "py-memory" / "runtime"
    with zipfile.ZipFile(runtime / "python_stdlib.zip") as archive:
        names = archive.namelist()
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == sorted(names)
    assert not [name for name in names if name.endswith(".py")]
    assert not {name.split("/")[0].removesuffix(".pyc") for name in names} & set(LEAVE_OUT)
    assert (runtime / "python_stdlib.zip").stat().st_size < (
        project.pyodide / "python_stdlib.zip"
    ).stat().st_size

    answer = run_in_node(
        project,
        runtime,
        """
import sqlite3, json, asyncio, hashlib, zoneinfo, struct, zlib, dataclasses, re, unicodedata
import base64, datetime, math, uuid, typing, email.message, importlib.metadata, zipfile, urllib.parse
import pkgutil, importlib, py_memory
for found in pkgutil.walk_packages(py_memory.__path__, "py_memory."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
from py_memory import errors
version = importlib.metadata.version("py-memory")
json.dumps([version, py_memory.__version__, errors.__spec__.origin, dataclasses.__spec__.origin])
""",
    )
    version, own, bytecode, origin = json.loads(answer)
    assert version == own == project.version
    assert bytecode.endswith(".whl/py_memory/errors.pyc")
    assert origin.endswith(".zip/dataclasses.pyc")


def test_the_bytecode_in_the_runtime_wheel_is_that_of_its_sources(project: Project, dist: Path):
    name = project.wheel_name
    with (
        zipfile.ZipFile(dist / "py-memory" / name) as plain,
        zipfile.ZipFile(dist / "py-memory" / "runtime" / name) as runtime,
    ):
        sources = [entry for entry in plain.namelist() if entry.endswith(".py")]
        for entry in plain.namelist():
            if not entry.endswith("RECORD"):
                assert runtime.read(entry) == plain.read(entry)
        added = set(runtime.namelist()) - set(plain.namelist())
        record = runtime.read(f"py_memory-{project.version}.dist-info/RECORD").decode()
        assert len(added) == len(sources)
        for entry in added:
            # Bit 0: made from the hash of the source, not its date; bit 1 is off: never compared with it.
            assert runtime.read(entry)[4:8] == b"\x01\x00\x00\x00"
        assert sorted(line.split(",")[0] for line in record.splitlines()) == sorted(runtime.namelist())


@pytest.mark.slow
def test_two_builds_of_the_same_sources_are_identical(project: Project, tmp_path: Path):
    results = []
    for place in ("one", "a longer path/two"):
        root = tmp_path / place
        shutil.copytree(
            project.root,
            root,
            ignore=lambda _, names: [name for name in names if name in OUTSIDE_THE_SOURCES],
        )
        copy = Project(root, project.packages)
        dist_tools.build(copy)
        results.append(
            {
                path.relative_to(copy.dist).as_posix(): sha256(path)
                for path in copy.dist.rglob("*")
                if path.is_file()
            }
        )
        before = {path: path.stat().st_mtime_ns for path in copy.dist.rglob("*")}
        dist_tools.build(copy)
        assert before == {path: path.stat().st_mtime_ns for path in copy.dist.rglob("*")}
    assert results[0] == results[1]


def test_the_size_report_adds_up(project: Project, dist: Path):
    lines = dist_tools.size_report(project).splitlines()
    rows = {
        line.split("  ")[0]: [int(number.replace(",", "")) for number in line.split()[-3:]]
        for line in lines[1:]
    }
    total = rows.pop("in all")
    loaded = rows.pop("what a page can load")
    files = [path for path in dist.rglob("*") if path.is_file()]
    assert total[0] == sum(path.stat().st_size for path in files)
    assert set(rows) == {path.relative_to(dist).as_posix() for path in files}
    assert loaded[0] == total[0] - (dist / "py-memory" / project.wheel_name).stat().st_size
    assert all(brotli < raw for raw, _, brotli in (total, loaded))
