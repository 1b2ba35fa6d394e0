"""Runs a script on two ranks of this host, as a launcher would start them."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from typing import NamedTuple

from tests.support.ports import free_port

MOST_S = 240  # on a busy machine
DIAGNOSE = "import sys; from diagnostics.cli.main import main; sys.exit(main())"
# KEEPING: a script's variables live until the interpreter ends. PyTorch 2.13 may hang if a DistributedDataParallel
# is freed before, after its group and just after its last gradients: it waits for a thread that wants the GIL.
PLAIN = "import __main__, runpy; __main__.ran = runpy.run_path('train.py', run_name='__main__')"
# A launcher: PyTorch is imported before it begins, so its two ranks need not import it. Both have one parent.
_LAUNCHER = """
import json, os, sys

_given = json.loads(os.environ.pop("TWO_RANKS"))
_children = []
for _rank in range(2):
    if (_child := os.fork()) == 0:
        break
    _children.append(_child)
else:
    print(*_children, flush=True)
    print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in _children), flush=True)
    os._exit(0)
for _number, _name in ((1, "out"), (2, "err")):
    os.dup2(os.open(f"{_given['streams']}/{_name}{_rank}", os.O_WRONLY | os.O_CREAT), _number)
os.environ.update(RANK=str(_rank), LOCAL_RANK=str(_rank))
exec(compile(_given["program"], sys.argv[0], "exec"), {"__name__": "__main__"})
"""


class Ended(NamedTuple):
    """What two ranks have left, each by rank."""

    codes: list[int]
    outputs: list[str]
    errors: list[str]


def run_two_ranks(forks, folder, text, *options, observed=True):
    """Run `text` as train.py under `diagnose run`, or plain; all processes have ended afterwards.

    Args:
        forks: of `torch_forks`.
        folder: the working directory.
        text: Python.
        options: of `diagnose run`.
        observed: whether under `diagnose run`.

    Raises:
        TimeoutError: they had not ended after MOST_S, and were killed; with what they had said.
    """
    (folder / "train.py").write_text(text)
    temporary, streams = folder / "temporary", folder / "streams"
    for made in (temporary, streams):
        made.mkdir(exist_ok=True)
    for old in streams.iterdir():
        old.unlink()
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    place |= {"TMPDIR": str(temporary), "COLUMNS": "100"}
    given = {"program": DIAGNOSE if observed else PLAIN, "streams": str(streams)}
    arguments = ["diagnose", "run", *options, "train.py"] if observed else ["train.py"]
    with forks.start(_LAUNCHER, *arguments, folder=folder, TWO_RANKS=json.dumps(given), **place) as launcher:
        launcher.wait_for("\n")
        children = [int(number) for number in launcher.said().splitlines()[0].split()]
        try:
            codes = launcher.end(MOST_S).stdout.splitlines()[1].split()
        except BaseException as error:
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"two ranks had not ended after {MOST_S} s: {_told(streams)}") from None
            raise
    return Ended([int(code) for code in codes], *_told(streams))


def _told(streams):
    return [[(streams / f"{name}{rank}").read_text() for rank in range(2)] for name in ("out", "err")]
