"""The programs of `tests/healthy/`, which train right: where they are, and how to load one."""

import importlib.util
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "healthy"
PROGRAMS = sorted(path for path in FOLDER.glob("*.py") if not path.stem.startswith(("test_", "conftest")))


def load(path):
    """Import a program anew, with its `build` and `train`."""
    spec = importlib.util.spec_from_file_location(f"healthy_{path.stem}", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program
