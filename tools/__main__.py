"""The commands of build.py, run by the interpreter of .venv."""

import os
import signal
import subprocess
import sys

from tools import dist, serve, suite
from tools.environment import MissingError
from tools.project import Project


def main(command: str, arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    project = Project()
    if command == "test":
        return suite.run_all(project, arguments)
    dist.build(project)
    if command == "serve":
        return serve.main(project.dist, arguments)
    if command == "bench":
        bench = [sys.executable, str(project.root / "tests" / "bench" / "bench.py"), *arguments]
        return subprocess.run(bench, cwd=project.root, check=False).returncode
    print(dist.size_report(project))
    return 0


def _end(*_: object) -> None:
    """Leave as on Ctrl-C, so that a tool that is running ends too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    try:
        status = main(sys.argv[1], sys.argv[2:])
    except MissingError as missing:
        print(f"build: {missing}")
        status = 1
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        # Whoever read along (a pager, head) has seen enough; nothing more can be said, not even by the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
