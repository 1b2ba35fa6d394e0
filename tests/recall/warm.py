"""Runs `diagnose run` in forks of a process that has already imported what a program imports.

Importing its frameworks and this library takes up to two thirds of a program's time under `diagnose run`. A server
imports them once, and a fork of it runs each program. The hooks are the same as in a new process: they are set as
soon as a framework is found to be imported.

A program that needs an interpreter of its own (it starts processes, or sets something before an import) gets one:
see `kind_of`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS: dict[str, tuple[str, ...]] = {
    "transformers": ("torch", "torch._dynamo", "transformers.trainer"),
    "torch": ("torch", "torch._dynamo"),  # the first optimizer imports the compiler
    "keras": ("keras", "keras.src.backend.tensorflow.trainer"),
}
COLLECTORS = {"transformers": ("pytorch", "transformers"), "torch": ("pytorch",), "keras": ("keras",)}
"""By kind of program: what its server imports, and which of this library's collectors."""

# Settings that an import reads, and processes that are started by the program's own command.
FRESH = re.compile(r"os\.environ|multiprocessing|spawn|subprocess|sys\.argv|fork|set_start_method|__main__\.py")
SHARED = ("isolation", "shared", "source", "crash")
COMMAND = "import sys; from tests.recall.warm import serve; serve(sys.argv[1])"


def kind_of(source: str) -> str | None:
    """Return the kind of a program, one of `KINDS`, or None if it needs an interpreter of its own."""
    if FRESH.search(source):
        return None
    imported = [
        name for name in (*KINDS, "tensorflow") if re.search(rf"^\s*(?:import|from) {name}\b", source, re.M)
    ]
    kinds = {"keras" if name == "tensorflow" else name for name in imported}
    if "keras" in kinds and len(kinds) > 1:  # both frameworks: Keras may be told to use PyTorch
        return None
    return next((kind for kind in KINDS if kind in kinds), None)


class Servers:
    """The servers of one thread, one for each kind of program; each runs one program at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start nothing yet."""
        self._environment = dict(environment)
        self._running: dict[str, subprocess.Popen[str]] = {}

    def run(
        self, kind: str, arguments: Sequence[str], folder: str, limit: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `diagnose` with arguments in a fork, in a folder.

        Raises:
            subprocess.TimeoutExpired: after `limit` seconds; the fork has been killed.
            RuntimeError: the server has ended.
        """
        server = self._server(kind)
        assert server.stdin is not None
        out, errors = Path(folder, ".out"), Path(folder, ".errors")
        request = {"arguments": list(arguments), "folder": folder, "out": str(out), "errors": str(errors)}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        child = int(self._answer(server))
        expired = threading.Event()

        def kill() -> None:
            expired.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)

        timer = threading.Timer(limit, kill)
        timer.start()
        try:
            code = int(self._answer(server))
        finally:
            timer.cancel()
        if expired.is_set():
            raise subprocess.TimeoutExpired(list(arguments), limit)
        return subprocess.CompletedProcess(
            list(arguments), code, out.read_text(errors="replace"), errors.read_text(errors="replace")
        )

    def close(self) -> None:
        """End the servers."""
        for server in self._running.values():
            assert server.stdin is not None
            server.stdin.close()
            server.wait()
        self._running.clear()

    def _server(self, kind: str) -> subprocess.Popen[str]:
        if kind not in self._running:
            self._running[kind] = subprocess.Popen(
                [sys.executable, "-c", COMMAND, kind],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self._running[kind]

    def _answer(self, server: subprocess.Popen[str]) -> str:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line:
            raise RuntimeError("the process that had imported the frameworks has ended")
        return line


def serve(kind: str) -> None:
    """Import, then run in a fork each program that standard input asks for."""
    for name in KINDS[kind]:
        importlib.import_module(name)
    _import_diagnostics(COLLECTORS[kind])
    requests = sys.stdin
    answers = os.fdopen(os.dup(1), "w")
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
        print(child, file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _import_diagnostics(frameworks: Sequence[str]) -> None:
    """Import what a run imports: the rules, the report, and the collectors of these frameworks."""
    import diagnostics.cli.run
    import diagnostics.collectors
    import diagnostics.run.output
    from diagnostics.rules.registry import all_rules

    all_rules()
    diagnostics.run.output.rehearse("json")
    for package in (*SHARED, *frameworks):
        folder = importlib.import_module(f"diagnostics.collectors.{package}")
        for module in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
            importlib.import_module(module.name)


def _become(request: dict[str, str]) -> None:
    """Run one program in this fork, and end the interpreter as a process of its own would."""
    os.setpgid(0, 0)
    for name, descriptor in (("out", 1), ("errors", 2)):
        file = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.chdir(request["folder"])
    sys.path.remove("")
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # a fresh process draws it from the system
    sys.argv = ["diagnose", *request["arguments"]]
    from diagnostics.cli.main import main

    sys.exit(main(request["arguments"]))
