"""The runtime that a page loads: Pyodide, a compiled standard library, our wheel and its lockfile."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pyodide_lock import PyodideLockSpec
from pyodide_lock.utils import add_wheels_to_spec

from tools.environment import digest, find_tool, run, say
from tools.project import Project

PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")

# Modules of the standard library that a memory in a page has no use for (patterns, without suffix): tools for
# developers, servers and clients of protocols that a page does not speak, other systems, desktop programs.
LEAVE_OUT = (
    "_aix_support _android_support _apple_support _osx_support _pydatetime _pydecimal _pyio _pyrepl "
    "antigravity bdb cProfile cgi cgitb cmd code compileall crypt ctypes curses dbm doctest ensurepip "
    "fileinput filecmp ftplib getpass html idlelib imaplib lib2to3 mailbox mailcap modulefinder "
    "multiprocessing netrc nntplib nturl2path optparse pdb pickletools pipes plistlib poplib profile "
    "profiling pstats pty py_compile pyclbr pydoc pydoc_data rlcompleter shelve smtplib smtpd sndhdr "
    "socketserver sqlite3/__main__ sqlite3/_completer sre_compile sre_constants sre_parse symtable tabnanny "
    "telnetlib test this timeit tkinter trace tty turtle turtledemo unittest venv wave webbrowser wsgiref "
    "xml xmlrpc zipapp "
    # Character sets of files of the last century; what comes into a memory is UTF-8. (cp437 is that of zip.)
    "encodings/cp[!4]* encodings/cp424 encodings/mac_* encodings/iso* encodings/koi8_* encodings/kz1048 "
    "encodings/ptcp154 encodings/hp_roman8 encodings/tis_620 encodings/palmos encodings/big5* "
    "encodings/euc_* encodings/gb* encodings/hz encodings/johab encodings/shift_jis*"
).split()


def compiled_stdlib(project: Project) -> Path:
    """Return the standard library as bytecode, made anew when Pyodide or this recipe changes."""
    return _compile(project, "python_stdlib.zip", project.pyodide / "python_stdlib.zip", None)


def compiled_wheel(project: Project, wheel: Path, stdlib: Path) -> Path:
    """Return our wheel with bytecode for this runtime added; its import takes a fifth of the time."""
    return _compile(project, wheel.name, wheel, stdlib)


def _compile(project: Project, name: str, source: Path, stdlib: Path | None) -> Path:
    tools = Path(__file__).parent
    script = tools / "compile_in_pyodide.py"
    job: dict[str, Any] = {"kind": "wheel" if stdlib else "stdlib", "leave_out": LEAVE_OUT}
    wanted = digest(
        source, script, tools / "compile.mjs", Path(__file__), project.pyodide / "pyodide.asm.wasm"
    )
    folder = project.cache / f"compiled-{job['kind']}"
    result, stamp = folder / name, folder / "stamp"
    if result.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return result
    say(f"compiling {name} (Pyodide under Node.js)")
    node = find_tool("node", "get Node.js 20 or newer from nodejs.org")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        job_file = Path(temporary) / "job.json"
        made = Path(temporary) / name
        job_file.write_text(json.dumps({**job, "input": str(source), "output": str(made)}), encoding="utf-8")
        command = [node, str(tools / "compile.mjs"), str(project.pyodide), str(script), str(job_file)]
        run(
            [*command, str(stdlib) if stdlib else ""],
            cwd=project.root,
            failure=f"Pyodide could not compile {name}:",
        )
        shutil.copyfile(made, result)
    stamp.write_text(wanted, encoding="utf-8")
    return result


def lockfile(project: Project, wheel: Path) -> bytes:
    """Return a Pyodide lockfile with one package: the wheel, under its name beside the lockfile."""
    stock = json.loads((project.pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))["info"]
    # What every release of pyodide-lock knows; abi_version came later and goes back in below.
    known = {name: stock[name] for name in ("arch", "platform", "python")}
    with tempfile.TemporaryDirectory() as temporary:
        draft = Path(temporary) / "pyodide-lock.json"
        draft.write_text(
            json.dumps({"info": {**known, "version": "0.0.0"}, "packages": {}}), encoding="utf-8"
        )
        spec = add_wheels_to_spec(PyodideLockSpec.from_json(draft), [wheel])
        spec.check_wheel_filenames()
        spec.to_json(draft)
        written = json.loads(draft.read_text(encoding="utf-8"))
    packages = {name: _plain(package) for name, package in written["packages"].items()}
    text = json.dumps({"info": stock, "packages": packages}, indent=1, sort_keys=True)
    return f"{text}\n".encode()


def _plain(package: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that Pyodide reads, whichever release of pyodide-lock wrote them."""
    names = ("depends", "file_name", "imports", "install_dir", "name", "package_type", "sha256", "version")
    return {name: package[name] for name in names}


def notice(project: Project) -> bytes:
    """Return the note on where the runtime comes from and under which licences."""
    version = json.loads((project.pyodide / "package.json").read_text(encoding="utf-8"))["version"]
    return (
        f"This folder holds the Pyodide runtime {version}, unchanged but for its standard library, which is\n"
        "compiled to bytecode and has fewer modules, and its lockfile, which names py-memory alone.\n"
        "Pyodide is under the Mozilla Public License 2.0; its source is at https://github.com/pyodide/pyodide.\n"
        "It contains CPython (Python Software Foundation License) and SQLite (public domain).\n"
    ).encode()
