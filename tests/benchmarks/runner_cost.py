"""What the runner adds to a cage's script, and what the script adds to its own imports.

$ python tests/benchmarks/runner_cost.py
"""

import ast
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bugs" / "04_wrong_label_count" / "train.py"
SESSION_BOUND = 1.2  # a warm `nox -s bug-04` against the script itself
SCRIPT_BOUND = 1.5  # the script against what it imports
RUNS = 3


def seconds(arguments, *, code):
    """Time a child process that must end with this exit code."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        done = subprocess.run(
            arguments,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"TMPDIR": folder, "PYTHONPATH": str(ROOT)},
        )
        took = time.perf_counter() - started
    if done.returncode != code:
        sys.exit(
            f"{' '.join(map(str, arguments))} ended with {done.returncode}, not {code}:\n{done.stderr[-2000:]}"
        )
    return took


def imports_alone():
    """Return the script's import statements, as a program of their own."""
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    return "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


def main():
    subjects = {
        "session": ([sys.executable, "-m", "nox", "-s", "bug-04"], 0),
        "script": ([sys.executable, str(SCRIPT)], 1),  # it fails, as a broken script should
        "imports": ([sys.executable, "-c", imports_alone()], 0),
    }
    for arguments, code in subjects.values():
        seconds(
            arguments, code=code
        )  # once unmeasured: the environment, the corpus and the page cache are warm then
    times = {name: [] for name in subjects}
    for _ in range(RUNS):  # side by side, so that a busy machine slows all of them alike
        for name, (arguments, code) in subjects.items():
            times[name].append(seconds(arguments, code=code))
    session, script, imports = (statistics.median(times[name]) for name in ("session", "script", "imports"))
    print(
        f"nox -s bug-04 / its script = {session / script:.2f} (at most {SESSION_BOUND}): "
        f"{session:.1f} s of {script:.1f} s"
    )
    print(
        f"the script / its imports = {script / imports:.2f} (at most {SCRIPT_BOUND}): {script:.1f} s of "
        f"{imports:.1f} s"
    )
    return 0 if session <= SESSION_BOUND * script and script <= SCRIPT_BOUND * imports else 1


if __name__ == "__main__":
    sys.exit(main())
