"""What `diagnose explain` takes for an ordinary traceback, against `import torch`, in seconds of CPU.

$ python tests/benchmarks/explain_cost.py
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOUND = 1 / 4  # of `import torch`: 0.3 s where that takes 1.2 s
RUNS = 5
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 41, in <module>
    main()
  File "/home/ada/train.py", line 33, in main
    loss = criterion(model(images), labels)
  File "/home/ada/.venv/lib/python3.11/site-packages/torch/nn/functional.py", line 3479, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
IndexError: Target 10 is out of bounds.
"""


def seconds(folder, *arguments):
    """Return the CPU time of a fresh interpreter in an empty folder, with bytecode as when installed."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    before = os.times()
    subprocess.run(
        command, input=TRACEBACK, text=True, stdout=subprocess.DEVNULL, check=False, cwd=folder, env=environment
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def brought_along():
    """Name the frameworks, and NumPy, that explaining a text imports."""
    frameworks = "('torch', 'tensorflow', 'keras', 'transformers', 'pandas', 'numpy')"
    code = f"import diagnostics, sys; diagnostics.explain({TRACEBACK!r})"
    code += f"; print(*[name for name in {frameworks} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def main(folder):
    programs = {
        "nothing": ("-c", "pass"),
        "explain": ("-m", "diagnostics", "explain", "-"),
        "torch": ("-c", "import torch"),
    }
    times = {name: [] for name in programs}
    for run in range(RUNS + 1):  # the first is not measured: it fills the page cache and writes bytecode
        for name, arguments in programs.items():
            taken = seconds(folder, *arguments)
            if run:
                times[name].append(taken)
    start = statistics.median(times["nothing"])
    ours, theirs = (statistics.median(times[name]) - start for name in ("explain", "torch"))
    ratio, brought = ours / theirs, brought_along()
    print(
        f"diagnose explain / import torch = {ratio:.3f} (at most {BOUND}): {1000 * ours:.0f} ms of "
        f"{1000 * theirs:.0f} ms of CPU, the interpreter's start left out"
    )
    print(f"diagnose explain brings along: {', '.join(brought) or 'no framework, no NumPy'} (none allowed)")
    return 0 if ratio <= BOUND and not brought else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(folder))
