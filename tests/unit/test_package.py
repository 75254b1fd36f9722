"""The package as a whole: one version, no third-party import, no browser import outside its place."""

import ast
import re
import sys
from pathlib import Path

import py_memory

PACKAGE = Path(py_memory.__file__).parent
BROWSER_MODULES = {"js", "pyodide", "pyodide_js", "_pyodide"}


def imported_modules(path: Path) -> set[str]:
    """The top-level names of everything that a file imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_the_version_is_one_that_installers_read():
    assert re.fullmatch(r"\d+\.\d+\.\d+", py_memory.__version__)


def test_the_engine_imports_the_standard_library_and_itself_only():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 10
    for path in files:
        in_browser = path.relative_to(PACKAGE).parts[0] == "browser"
        allowed = sys.stdlib_module_names | {"py_memory"} | (BROWSER_MODULES if in_browser else set())
        assert imported_modules(path) <= allowed, path.name
