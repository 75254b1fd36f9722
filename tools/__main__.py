"""The commands of build.py, run by the interpreter of .venv."""

import sys

if __name__ == "__main__":
    sys.exit(0)
