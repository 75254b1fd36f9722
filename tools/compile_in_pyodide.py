"""Turn /input.zip into /output.zip with bytecode; runs inside Pyodide, started by compile.mjs.

`job_text` (JSON) says how: "kind" is "stdlib" (bytecode in place of sources, without the modules of
"leave_out") or "wheel" (bytecode beside the sources, RECORD renewed).
"""

import base64
import hashlib
import importlib._bootstrap_external as bootstrap
import importlib.util
import json
import sys
import zipfile
from fnmatch import fnmatchcase as fnmatch

# The oldest date that a zip archive can hold.
DATE = (1980, 1, 1, 0, 0, 0)

job = json.loads(globals()["job_text"])


def compiled(source: bytes, filename: str, optimize: int) -> bytes:
    """Return bytecode that Python loads without looking at the source's date or contents."""
    code = compile(source, filename, "exec", dont_inherit=True, optimize=optimize)
    pyc: bytes = bootstrap._code_to_hash_pyc(code, importlib.util.source_hash(source), False)  # type: ignore[attr-defined]  # noqa: SLF001
    return bytes(pyc)


def stdlib(files: dict[str, bytes], leave_out: list[str]) -> dict[str, bytes]:
    """Replace each source by its bytecode; zip imports find `name.pyc` where `name.py` was."""
    home = next(path for path in sys.path if path.endswith(".zip"))
    result = {}
    for name, data in files.items():
        module = name.removesuffix(".py")
        names = (module, module.split("/")[0])
        if name.endswith(".pyc") or any(fnmatch(part, pattern) for part in names for pattern in leave_out):
            continue
        if name.endswith(".py"):
            # Level 2 leaves out docstrings and the library's own assertions.
            result[f"{name}c"] = compiled(data, f"{home}/{name}", 2)
        else:
            result[name] = data
    return result


def wheel(files: dict[str, bytes]) -> dict[str, bytes]:
    """Add bytecode beside each source, which stays for readable tracebacks.

    The worker imports from the wheel as it is, and zip imports find `name.pyc` there, not in __pycache__.
    """
    result = {name: data for name, data in files.items() if not name.endswith("/RECORD")}
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    for name in [name for name in result if name.endswith(".py")]:
        result[f"{name}c"] = compiled(result[name], name, 0)
    lines = []
    for name in sorted(result):
        digest = base64.urlsafe_b64encode(hashlib.sha256(result[name]).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(result[name])}\n")
    lines.append(f"{record},,\n")
    result[record] = "".join(lines).encode()
    return result


with zipfile.ZipFile("/input.zip") as archive:
    contents = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
contents = stdlib(contents, job["leave_out"]) if job["kind"] == "stdlib" else wheel(contents)
with zipfile.ZipFile("/output.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for entry in sorted(contents):
        info = zipfile.ZipInfo(entry, DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        archive.writestr(info, contents[entry])
