"""The wheel of py_memory, made by pyodide-build, the same bytes wherever and whenever it is made."""

import json
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.environment import MissingError, digest, find_tool, run, say
from tools.project import Project

# A date for the entries of every archive: a build depends on the sources alone.
SOURCE_DATE_EPOCH = "1580601600"
SOURCES = ("pyproject.toml", "LICENSE", "README.md", "py_memory")


def build_wheel(project: Project) -> Path:
    """Return the wheel, building it when its sources have changed.

    Raises:
        MissingError: pyodide-build failed; there is no other way to a wheel here.
    """
    sources = [path for path in _sources(project.root) if path.is_file()]
    names = "\n".join(path.relative_to(project.root).as_posix() for path in sources)
    recipe = digest(Path(__file__), project.root / "tools" / "requirements.txt", *sources)
    folder = project.cache / "wheel"
    wheel, stamp = folder / project.wheel_name, folder / "stamp"
    if wheel.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == f"{recipe}\n{names}":
        return wheel
    say("building the wheel (pyodide build)")
    with tempfile.TemporaryDirectory() as temporary:
        source, stub, out = (Path(temporary) / name for name in ("source", "pyodide-root", "out"))
        stage(project, source)
        _write_stub(project, stub)
        run(
            [*_pyodide_command(), "build", str(source), "--outdir", str(out), "--no-isolation"],
            cwd=source,
            failure="pyodide-build could not build the wheel:",
            env={
                "PYODIDE_ROOT": str(stub),
                "SKIP_EMSCRIPTEN_VERSION_CHECK": "1",
                "PYODIDE_SKIP_EMSCRIPTEN_INSTALL": "1",
                "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH,
                "PATH": os.pathsep.join([str(stub / "bin"), os.environ.get("PATH", "")]),
            },
        )
        made = [path.name for path in out.glob("*.whl")]
        if made != [project.wheel_name]:
            raise MissingError(f"pyodide-build made {made} in place of {project.wheel_name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        result = out / project.wheel_name
        if sys.version_info < (3, 12):
            result = _without_repacking(result, source, Path(temporary) / "plain")
        shutil.copyfile(result, wheel)
    stamp.write_text(f"{recipe}\n{names}", encoding="utf-8")
    return wheel


def _without_repacking(repacked: Path, source: Path, out: Path) -> Path:
    """Return the wheel as the standard front end packs it, sure that it holds the same.

    The pyodide-build for Python 3.11 unpacks every wheel and packs it again in its own way. So that there is
    one wheel for one version, the packing that every other release leaves alone is kept.

    Raises:
        MissingError: the two differ in more than the packing.
    """
    run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
        cwd=source,
        failure="the wheel could not be built:",
        env={"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH},
    )
    plain = out / repacked.name
    if _contents(plain) != _contents(repacked):
        raise MissingError("pyodide-build and the standard front end made different wheels")
    return plain


def _contents(wheel: Path) -> dict[str, object]:
    """Return what is in a wheel, its list of files without their order."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    record = next(name for name in found if name.endswith(".dist-info/RECORD"))
    return {**found, record: sorted(found[record].split())}


def stage(project: Project, target: Path) -> None:
    """Copy what the wheel is made of, and nothing else, to a folder of its own."""
    for path in _sources(project.root):
        copy = target / path.relative_to(project.root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _sources(root: Path) -> list[Path]:
    found: list[Path] = []
    for name in SOURCES:
        path = root / name
        if path.is_dir():
            found += [
                file
                for file in path.rglob("*")
                if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".pyc"
            ]
        elif path.exists():
            found.append(path)
    return sorted(found)


def _pyodide_command() -> list[str]:
    """Return the command line of the pyodide tool that lies beside this interpreter."""
    # Not resolved: the interpreter of a virtual environment is a link that leads out of it.
    beside = Path(sys.executable).parent
    for name in ("pyodide", "pyodide.exe"):
        if (beside / name).exists():
            return [str(beside / name)]
    raise MissingError("pyodide-build is missing from .venv; delete .venv and run build.py again")


def _write_stub(project: Project, folder: Path) -> None:
    """Write the part of a cross-build environment that a wheel without compiled code asks for.

    The real one is a large download of compilers and headers, none of which a pure wheel uses.
    """
    if sys.platform != "win32":
        find_tool("make", "pyodide-build reads its settings with it (on Debian: apt-get install make)")
    info = json.loads((project.pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))["info"]
    version = json.loads((project.pyodide / "package.json").read_text(encoding="utf-8"))["version"]
    major, minor, micro = info["python"].split(".")
    settings = {
        "PYVERSION": info["python"],
        "PYMAJOR": major,
        "PYMINOR": minor,
        "PYMICRO": micro,
        "PYODIDE_VERSION": version,
        "PYODIDE_ABI_VERSION": info["abi_version"],
        "PYODIDE_EMSCRIPTEN_VERSION": info["platform"].removeprefix("emscripten_").replace("_", "."),
        "SIDE_MODULE_CFLAGS": "-O2",
        "SIDE_MODULE_CXXFLAGS": "-O2",
        "SIDE_MODULE_LDFLAGS": "-O2",
        "TARGETINSTALLDIR": str(folder / "target"),
        "SYSCONFIGDATA_DIR": str(folder / "sysconfigdata"),
        "SYSCONFIG_NAME": "_sysconfigdata__emscripten_wasm32-emscripten",
        "PYTHONINCLUDE": str(folder / "include"),
        "HOSTSITEPACKAGES": str(folder / "site-packages"),
        "PLATFORM_TRIPLET": "wasm32-emscripten",
    }
    # The release for Python 3.11 cannot be told to do without a compiler: it asks this one its version.
    compiler = folder / "bin" / "emcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(f"#!/bin/sh\necho {settings['PYODIDE_EMSCRIPTEN_VERSION']} >&2\n", encoding="utf-8")
    compiler.chmod(0o755)
    # It builds in an environment of its own, into which it copies this.
    system = folder / "target" / "sysconfigdata" / f"{settings['SYSCONFIG_NAME']}.py"
    system.parent.mkdir(parents=True)
    system.write_text("build_time_vars = {}\n", encoding="utf-8")
    # It also runs make without a path, so that no program is found: make itself prints the settings.
    lines = [f"export {name}={value}\n$(info {name}={value})" for name, value in settings.items()]
    (folder / "Makefile.envs").write_text(
        "\n".join([*lines, ".output_vars: ;", ""]), encoding="utf-8", newline="\n"
    )
