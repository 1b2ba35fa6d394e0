"""Runs `diagnose run` in forks of a process that has already imported what a program imports.

Importing its frameworks and this library takes up to two thirds of a program's time under `diagnose run`. The
hooks are the same as in a new process: they are set as soon as a framework is found to be imported.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bugs.lab.forks import Fork, Forks

ROOT = Path(__file__).resolve().parents[3]
KINDS: dict[str, tuple[str, ...]] = {
    "keras": ("keras", "keras.src.backend.tensorflow.trainer"),
    "transformers": ("torch", "torch._dynamo", "transformers.trainer"),
    "torch": ("torch", "torch._dynamo"),  # the first optimizer imports the compiler
}
COLLECTORS = {"transformers": ("pytorch", "transformers"), "torch": ("pytorch",), "keras": ("keras",)}
"""By kind of program: what is imported before, and which of this library's collectors are."""

SHARED = ("isolation", "shared", "source", "crash")
# Nothing outlives the process that asked for it, not even where that one is killed.
DIES_WITH_ITS_PARENT = """
import ctypes, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
"""
BEGINNING = """
import gc, importlib, os, pkgutil, sys
gc.disable()  # collections take a fifth of the imports
sys.path.insert(1, {root!r})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
errors = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # TensorFlow logs its devices in any case
try:
    for name in {modules}:
        importlib.import_module(name)
finally:
    os.dup2(errors, 2)
import diagnostics.cli.run
import diagnostics.run.output
from diagnostics.rules.registry import all_rules
all_rules()
diagnostics.run.output.rehearse("json")
for name in {collectors}:
    folder = importlib.import_module("diagnostics.collectors." + name)
    for module in pkgutil.walk_packages(folder.__path__, folder.__name__ + "."):
        importlib.import_module(module.name)
gc.enable()
gc.collect()  # what is there is as old as after imports with collections
"""
END = (
    DIES_WITH_ITS_PARENT
    + """
import sys, tempfile
tempfile.tempdir = None  # this process has a TMPDIR of its own
if "numpy" in sys.modules:
    sys.modules["numpy"].random.seed()  # a new process draws it from the system
from diagnostics.cli.main import main
sys.exit(main())
"""
)
# Settings that an import reads, and processes that are started by the program's own command.
FRESH = re.compile(
    r"os\.environ(?!\.get\()|multiprocessing|spawn|subprocess|sys\.argv|fork|set_start_method|__main__\.py"
)


def kind_of(source: str) -> str | None:
    """Return the kind of a program, one of `KINDS`, or None if it needs an interpreter of its own."""
    if FRESH.search(source):
        return None
    imported = [
        name for name in (*KINDS, "tensorflow") if re.search(rf"^\s*(?:import|from) {name}\b", source, re.M)
    ]
    kinds = {"keras" if name == "tensorflow" else name for name in imported}  # with transformers: a tokenizer
    if {"keras", "torch"} <= kinds:  # Keras may be told to use PyTorch
        return None
    return next((kind for kind in KINDS if kind in kinds), None)


class WarmProcesses:
    """A process for each kind of program, of which each program's is forked; for one thread."""

    def __init__(self) -> None:
        self._forks: dict[str, Forks] = {}
        self._closing = contextlib.ExitStack()

    def diagnose(
        self, kind: str, arguments: Sequence[str], folder: Path, limit: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `diagnose` with arguments in a folder.

        Raises:
            subprocess.TimeoutExpired: after `limit` seconds.
        """
        with self.start(kind, arguments, folder) as fork:
            return fork.end(limit)

    def start(self, kind: str, arguments: Sequence[str], folder: Path, **environment: str) -> Fork:
        """Start `diagnose` with arguments in a folder, with variables beside this process's own."""
        if kind not in self._forks:
            collectors = (*SHARED, *COLLECTORS[kind])
            beginning = BEGINNING.format(root=str(ROOT), modules=KINDS[kind], collectors=collectors)
            self._forks[kind] = self._closing.enter_context(Forks(DIES_WITH_ITS_PARENT + beginning))
        environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
        return self._forks[kind].start(END, "diagnose", *arguments, folder=folder, **environment)

    def close(self) -> None:
        """End them."""
        self._closing.close()
