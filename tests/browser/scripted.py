"""A site whose engine is scripted_engine.py: the page side is real, the answers are made up."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

from tools.serve import Override, StaticServer

HERE = Path(__file__).parent
ROOT = "/py-memory/"
BLANK = "/blank.html"

# Before the body of an async function in a page: the module, and what a call is refused with.
PRELUDE = """
const m = await import("/py-memory/memory.js");
const failing = async (promise) => {
  try {
    await promise;
    return "nothing was refused";
  } catch (error) {
    const { code, message, details } = error;
    return { ours: error instanceof m.PyMemoryError, code, message, details };
  }
};
"""


def put_blank(site: StaticServer) -> str:
    """Serve an empty page that only gives access to the module, and return its address."""
    site.overrides[BLANK] = Override(body=b"<!doctype html><title>blank</title>", content_type="text/html")
    site.overrides["/favicon.ico"] = Override(body=b"", content_type="image/x-icon")
    return site.url + BLANK


def put_engine(site: StaticServer, source: str | None = None) -> None:
    """Serve a wheel with this engine in place of ours, with lockfile and list of files to match."""
    listed = json.loads(site.find(f"{ROOT}manifest.json").read_bytes())
    path = next(name for name in listed["files"] if name.startswith("runtime/") and name.endswith(".whl"))
    wheel = _wheel(source or (HERE / "scripted_engine.py").read_text(encoding="utf-8"))
    lock = json.loads(site.find(f"{ROOT}runtime/pyodide-lock.json").read_bytes())
    lock["packages"]["py-memory"]["sha256"] = hashlib.sha256(wheel).hexdigest()
    replace(site, path, wheel)
    replace(site, "runtime/pyodide-lock.json", json.dumps(lock).encode())


def replace(site: StaticServer, path: str, body: bytes) -> None:
    """Serve other bytes for one of our files, and list them as if they had been built."""
    manifest = site.overrides.get(f"{ROOT}manifest.json")
    text = manifest.body if manifest else site.find(f"{ROOT}manifest.json").read_bytes()
    listed = json.loads(text)
    listed["files"][path] = {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
    site.overrides[ROOT + path] = Override(body=body)
    site.overrides[f"{ROOT}manifest.json"] = Override(body=json.dumps(listed).encode())


def _wheel(engine: str) -> bytes:
    info = "py_memory-0.1.0.dist-info"
    files = {
        "py_memory/__init__.py": "",
        "py_memory/browser/__init__.py": "",
        "py_memory/browser/worker.py": engine,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: py-memory\nVersion: 0.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "".join(f"{name},,\n" for name in ("py_memory/__init__.py",)),
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()
