"""The folder dist/: what is put on a web host, and the report of its sizes."""

import gzip
import hashlib
import json
from pathlib import Path

import brotli

from tools.environment import say
from tools.locking import exclusive
from tools.project import Project
from tools.runtime import PYODIDE_FILES, compiled_stdlib, compiled_wheel, lockfile, notice
from tools.wheel import build_wheel

BROTLI_QUALITY = 9
GZIP_LEVEL = 9


def build(project: Project) -> Path:
    """Make dist/ and return it. What is already right is left as it is."""
    with exclusive(project.cache / "build.lock"):
        files = assemble(project)
        changed = _write(project.dist, files)
    if changed:
        say(f"wrote dist/ ({changed} of {len(files)} files changed)")
    else:
        say(f"dist/ is up to date ({len(files)} files)")
    return project.dist


def assemble(project: Project) -> dict[str, bytes]:
    """Return every file of dist/ by its path with forward slashes."""
    wheel = build_wheel(project)
    stdlib = compiled_stdlib(project)
    runtime_wheel = compiled_wheel(project, wheel, stdlib)
    ours: dict[str, bytes] = {
        "LICENSE": (project.root / "LICENSE").read_bytes(),
        wheel.name: wheel.read_bytes(),
        "runtime/NOTICE.txt": notice(project),
        "runtime/python_stdlib.zip": stdlib.read_bytes(),
        f"runtime/{runtime_wheel.name}": runtime_wheel.read_bytes(),
        "runtime/pyodide-lock.json": lockfile(project, runtime_wheel),
    }
    for name in PYODIDE_FILES:
        ours[f"runtime/{name}"] = (project.pyodide / name).read_bytes()
    page: dict[str, bytes] = {}
    web = project.root / "web"
    for path in sorted(web.rglob("*")):
        relative = path.relative_to(web).as_posix()
        if not path.is_file() or path.name.startswith(".") or path.name in {"jsconfig.json", "tsconfig.json"}:
            continue
        if relative.startswith("demo/"):
            page[relative] = path.read_bytes()
        else:
            ours[relative] = path.read_bytes()
    index = project.root / "index.html"
    if index.exists():
        page["index.html"] = index.read_bytes()
    ours["manifest.json"] = manifest(project.version, ours)
    return {**page, **{f"py-memory/{name}": data for name, data in ours.items()}}


def manifest(version: str, files: dict[str, bytes]) -> bytes:
    """Return the list of files with their sha256 and size, by which the worker checks what it loads."""
    listed = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in sorted(files.items())
    }
    text = json.dumps({"version": version, "files": listed}, indent=1)
    return f"{text}\n".encode()


def _write(folder: Path, files: dict[str, bytes]) -> int:
    """Make the folder hold exactly these files and return how many had to change."""
    changed = 0
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in files:
            path.unlink()
            changed += 1
    for name, data in files.items():
        path = folder / name
        if path.exists() and path.read_bytes() == data:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        changed += 1
    return changed


def size_report(project: Project) -> str:
    """Return a table of the files of dist/: raw, gzip, brotli, in bytes, and the sums."""
    store = project.cache / "sizes.json"
    known: dict[str, list[int]] = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    sizes: dict[str, list[int]] = {}
    rows: list[tuple[str, list[int]]] = []
    for path in sorted(project.dist.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            key = hashlib.sha256(data).hexdigest()
            sizes[key] = known.get(key) or [
                len(data),
                len(gzip.compress(data, GZIP_LEVEL)),
                len(brotli.compress(data, quality=BROTLI_QUALITY)),
            ]
            rows.append((path.relative_to(project.dist).as_posix(), sizes[key]))
    store.write_text(json.dumps(sizes), encoding="utf-8")
    # The plain wheel is for installers; no page loads both it and the runtime's.
    installers = f"py-memory/{project.wheel_name}"
    loaded = [row for name, row in rows if name != installers]
    rows.append(("what a page can load", [sum(row[column] for row in loaded) for column in range(3)]))
    rows.append(("in all", [sum(row[column] for _, row in rows[:-1]) for column in range(3)]))
    width = max(len(name) for name, _ in rows)
    lines = [f"{'dist/':<{width}}  {'raw':>11}  {'gzip':>11}  {'brotli':>11}"]
    lines += [f"{name:<{width}}  {row[0]:>11,}  {row[1]:>11,}  {row[2]:>11,}" for name, row in rows]
    return "\n".join(lines)
