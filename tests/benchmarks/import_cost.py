"""What `import diagnostics` and the commands that only print cost, against what its users import anyway.

$ python tests/benchmarks/import_cost.py
"""

import resource
import statistics
import subprocess
import sys
import time

BOUND = 1 / 20  # of `import torch`
RUNS = 5
COMMANDS = {"--version": 1 / 10, "--help": 1 / 10, "rules": 1 / 2}  # of the CPU time of `import torch`
REPEATED = 10


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


def cpu_seconds(*arguments):
    """Return the median CPU time of a fresh interpreter, its start included."""
    taken = []
    for _ in range(REPEATED):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def commands_are_quick():
    """Print what the commands cost, and return whether that is within the bounds."""
    theirs, quick = cpu_seconds("-c", "import torch"), True
    for command, bound in COMMANDS.items():
        ours = cpu_seconds("-m", "diagnostics", command)
        print(
            f"diagnose {command} / import torch = {ours / theirs:.3f} (at most {bound:g}): "
            f"{1000 * ours:.0f} ms of {1000 * theirs:.0f} ms of CPU time"
        )
        quick = quick and ours / theirs <= bound
    return quick


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
    return 0 if commands_are_quick() and ratio <= BOUND and not brought else 1


if __name__ == "__main__":
    sys.exit(main())
