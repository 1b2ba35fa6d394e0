"""What `import diagnostics` costs, against what its users import anyway.

$ python tests/benchmarks/import_cost.py
"""

import statistics
import subprocess
import sys
import time

BOUND = 1 / 20  # of `import torch`
RUNS = 5


def seconds(statement):
    """Time a fresh interpreter that runs one statement."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def imported(statement):
    """Name the frameworks that a statement brings along."""
    frameworks = "('torch', 'tensorflow', 'keras', 'transformers', 'numpy')"
    code = f"import sys; {statement}; print(*[name for name in {frameworks} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def main():
    statements = {"nothing": "pass", "diagnostics": "import diagnostics", "torch": "import torch"}
    for statement in statements.values():
        seconds(statement)  # once unmeasured, so that all files are in the page cache
    times = {name: [] for name in statements}
    for _ in range(RUNS):  # side by side, so that a busy machine slows all of them alike
        for name, statement in statements.items():
            times[name].append(seconds(statement))
    start = statistics.median(times["nothing"])
    ours, theirs = (statistics.median(times[name]) - start for name in ("diagnostics", "torch"))
    ratio, brought = ours / theirs, imported("import diagnostics")
    print(
        f"import diagnostics / import torch = {ratio:.4f} (at most {BOUND}): {1000 * ours:.0f} ms of "
        f"{1000 * theirs:.0f} ms, the interpreter's start left out"
    )
    print(f"import diagnostics brings along: {', '.join(brought) or 'no framework'} (none allowed)")
    return 0 if ratio <= BOUND and not brought else 1


if __name__ == "__main__":
    sys.exit(main())
