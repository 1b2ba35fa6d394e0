"""One failure, in the forms in which people paste it.

`REAL` are programs: each makes the printer that it names print the failure of `TRAIN`, here and now. `PREFIXED` is
what loggers, launchers and terminals put around the lines.
"""

from collections.abc import Callable
from itertools import zip_longest

TRAIN = """\
def loss_of(labels):
    if max(labels) > 1:
        raise IndexError(f"Target {max(labels)} is out of bounds.")  # PyTorch's words


def main():
    for labels in ([0, 1, 0], [0, 2, 1]):
        loss_of(labels)


if __name__ == "__main__":
    main()
"""
TEST_TRAIN = """\
import pytest
import train

def test_training():
    train.main()

class TestLoss:
    @pytest.mark.parametrize("label", [0, 2])
    def test_of(self, label):
        train.loss_of([label])

def test_passes():
    pass
"""

_IPYTHON = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors={colours!r})
shell.InteractiveTB.set_mode({mode!r})
shell.run_cell("import train", store_history=True)
shell.run_cell("epochs = 1\\ntrain.main()", store_history=True)
"""
_RICH = """
import sys
from rich.console import Console
from rich.traceback import install
install(console=Console(file=sys.stderr, width={width}, force_terminal={colours}), show_locals={locals})
import train
train.main()
"""
_CELL = """
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance(colors="nocolor").run_cell(open("train.py").read(), store_history=True)
"""
_CHAIN = """
import train
try:
    train.main()
except IndexError as error:
    {raised}
"""
REAL: dict[str, tuple[str, ...]] = {
    "plain": ("train.py",),
    "IPython": ("-c", _IPYTHON.format(colours="nocolor", mode="Context")),
    "IPython in colours": ("-c", _IPYTHON.format(colours="linux", mode="Context")),
    "IPython with variables": ("-c", _IPYTHON.format(colours="nocolor", mode="Verbose")),
    "IPython in plain mode": ("-c", _IPYTHON.format(colours="nocolor", mode="Plain")),
    "pytest, native": ("-m", "pytest", "--tb=native", "test_train.py"),
    "rich": ("-c", _RICH.format(width=100, colours=False, locals=False)),
    "rich in a narrow window": ("-c", _RICH.format(width=48, colours=False, locals=False)),
    "rich with locals": ("-c", _RICH.format(width=80, colours=False, locals=True)),
    "rich in colours": ("-c", _RICH.format(width=80, colours=True, locals=True)),
    "logging": (
        "-c",
        "import logging, train\nlogging.basicConfig(format='%(asctime)s %(levelname)s %(name)s: %(message)s')\n"
        "try:\n    train.main()\nexcept IndexError:\n    logging.exception('epoch failed')\n"
        "logging.warning('cleaning up')",
    ),
    "absl": (
        "-c",
        "from absl import logging\nimport train\ntry:\n    train.main()\nexcept IndexError:\n"
        "    logging.exception('epoch failed')\nlogging.error('cleaning up')",
    ),
    "an exception it was raised from": ("-c", _CHAIN.format(raised="raise RuntimeError('step 17') from error")),
    "an exception during whose handling": ("-c", _CHAIN.format(raised="{}['checkpoint']")),
    "notes": ("-c", _CHAIN.format(raised="error.add_note('in epoch 3')\n    raise")),
    "an exception group": (
        "-c",
        "import asyncio, train\nasync def job(): train.main()\nasync def wait(): await asyncio.sleep(9)\n"
        "async def both():\n    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(job()); group.create_task(wait())\nasyncio.run(both())",
    ),
    "an exception group in a group": (
        "-c",
        "import train\ntry:\n    train.main()\nexcept IndexError as error:\n    found = error\n"
        "raise ExceptionGroup('all', [KeyError('lr'), ExceptionGroup('some', [found, ValueError('seed')])])",
    ),
    "a task that nobody awaited": (
        "-c",
        "import asyncio, train\nasync def job(): train.main()\nasync def main():\n"
        "    task = asyncio.create_task(job())\n    await asyncio.sleep(0)\nasyncio.run(main())",
    ),
    "a thread": ("-c", "import threading, train\nthreading.Thread(target=train.main).start()"),
    "a pool of processes": (
        "-c",
        "import multiprocessing, train\nif __name__ == '__main__':\n"
        "    multiprocessing.get_context('fork').Pool(1).apply(train.main)",
    ),
    "unittest": (
        "-c",
        "import unittest, train\nclass T(unittest.TestCase):\n    def test(self): train.main()\nunittest.main()",
    ),
    "logged as JSON": (
        "-c",
        "import json, traceback, train\ntry:\n    train.main()\nexcept IndexError:\n    print(json.dumps("
        "{'level': 'ERROR', 'message': 'failed\\n' + traceback.format_exc(), 'logger': 'trainer'}))",
    ),
    "a cell": ("-c", _CELL),
}


def each_line(prefix: Callable[[int], str]) -> Callable[[str], str]:
    """Put a prefix before each line; it may depend on the line's number."""
    return lambda text: "".join(f"{prefix(n)}{line}\n" for n, line in enumerate(text.splitlines()))


PREFIXED: dict[str, Callable[[str], str]] = {
    "PyTorch's ranks": each_line(lambda n: "[rank0]: "),
    "torchrun --tee": each_line(lambda n: "[default1]:"),
    "srun --label": each_line(lambda n: "0: "),
    "mpirun --tag-output": each_line(lambda n: "[1,0]<stderr>:"),
    "docker compose": each_line(lambda n: "trainer-1  | "),
    "Ray": each_line(lambda n: "(train_fn pid=4711, ip=10.0.0.7) "),
    "kubectl": each_line(lambda n: "[pod/train-0/main] "),
    "a logger": each_line(lambda n: f"2026-01-02 10:11:12,{300 + n} ERROR trainer: "),
    "a logger in brackets": each_line(lambda n: f"[2026-01-02 10:11:{10 + n}][__main__][ERROR] - "),
    "GitHub Actions": each_line(lambda n: f"2026-01-02T10:11:12.{3456700 + n}Z "),
    "journald": each_line(lambda n: f"Jan  2 10:11:{10 + n} box python[4711]: "),
    "absl": each_line(lambda n: f"E0102 10:11:12.{345600 + n} 140123 train.py:12] "),
    "a stamp and a rank": each_line(lambda n: f"2026-01-02 10:11:12.{300 + n} [rank3]: "),
    "pytest's own failure": each_line(lambda n: "INTERNALERROR> "),
    "a quotation": each_line(lambda n: "> "),
    "a comment": each_line(lambda n: "# "),
    "an indent": each_line(lambda n: "        "),
    "nothing, on Windows": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "a fence": lambda text: f"```python\n{text}```\nIt worked with torch 1.9.\n",
    "a shell's prompt": lambda text: f"$ python train.py\n{text}(nli) ada@box:~/nli$ nvidia-smi\nError: none\n",
    "a progress bar": lambda text: (
        f"Map: 100%|█████| 8/8\r\n\r  0%|          | 0/750 [00:00<?, ?it/s]{text}\r  0%|    | 0/750 [00:01<?]\n"
    ),
    "colours whose escape was lost": lambda text: text.replace("Error: ", "[1;35mError[0m: ").replace(
        '", line ', '[0m", line [35m'
    ),
    "a string": lambda text: repr(text),
}
"""What stands around a plain traceback. Each takes its text and returns another."""


def interleaved(*texts: str) -> str:
    """Mix texts line by line."""
    return "".join(
        f"{line}\n" for lines in zip_longest(*(t.splitlines() for t in texts)) for line in lines if line
    )
