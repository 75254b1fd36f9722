"""Where things are: the folders of one checkout."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Project:
    """One checkout and the folders that the build reads and writes."""

    root: Path = ROOT
    packages: Path = field(default=ROOT / "node_modules")

    @property
    def cache(self) -> Path:
        """What can be thrown away and made again."""
        return self.root / ".cache"

    @property
    def dist(self) -> Path:
        """What the build makes."""
        return self.root / "dist"

    @property
    def pyodide(self) -> Path:
        """The npm package of the Pyodide runtime."""
        return self.packages / "pyodide"

    @property
    def version(self) -> str:
        """The version of py_memory, from its only source."""
        text = (self.root / "py_memory" / "__init__.py").read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
        if found is None:
            raise ValueError("py_memory/__init__.py does not set __version__")
        return found[1]

    @property
    def wheel_name(self) -> str:
        """The file name of the wheel; installers refuse a wheel under any other."""
        return f"py_memory-{self.version}-py3-none-any.whl"
