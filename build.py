"""Build, serve, test and measure py-memory: python3 build.py [build|serve|test|bench] [arguments].

Runs on any Python 3.11 or newer with nothing installed; what is needed beyond that it sets up itself,
inside this folder (.venv, node_modules, .cache), and says so.
"""

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
USAGE = """usage: python3 build.py [command] [arguments]

  build    make dist/ and print its sizes (the default)
  serve    build, then serve dist/ on http://localhost:8000 (--port N for another one)
  test     build, check style and types, then run pytest with the arguments given: everything in Chromium and
           the core of it in Firefox and WebKit; --engine chromium|firefox|webkit|all runs everything there
  bench    build, then measure in Chromium
"""


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever meets the next line has an older one
        print("build.py needs Python 3.11 or newer; this is", sys.version.split()[0])
        return 1
    command, rest = (arguments[0], arguments[1:]) if arguments else ("build", [])
    if command in {"-h", "--help", "help"}:
        print(USAGE)
        return 0
    if command not in {"build", "serve", "test", "bench"}:
        print(f"build.py: there is no command {command!r}.\n\n{USAGE}")
        return 2

    from tools import environment  # noqa: PLC0415 - only now is it sure that Python can read it

    try:
        needed = {"test": environment.engines_of(rest), "bench": ("chromium",)}
        python = environment.prepare(ROOT, browsers=needed.get(command, ()))
    except environment.MissingError as missing:
        print(f"build: {missing}")
        return 1
    process = subprocess.Popen([str(python), "-m", "tools", command, *rest], cwd=ROOT)  # noqa: S603
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The child got it too and ends by itself.
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
