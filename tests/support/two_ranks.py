"""Runs a script on two ranks of this host, as a launcher would start them."""

import os
import socket
import subprocess
import sys
from typing import NamedTuple


class Ended(NamedTuple):
    """What two ranks have left, each by rank."""

    codes: list[int]
    outputs: list[str]
    errors: list[str]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run_two_ranks(folder, text, *options, observed=True, most_s=240):
    """Run `text` as train.py under `diagnose run`, or plain; all processes have ended afterwards."""
    (folder / "train.py").write_text(text)
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    command = ["-m", "diagnostics", "run", *options] if observed else []
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    place |= {"TMPDIR": str(temporary), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    started = [
        subprocess.Popen(
            [sys.executable, *command, "train.py"],
            cwd=folder,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]
    try:
        told = [process.communicate(timeout=most_s) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return Ended([process.returncode for process in started], [out for out, _ in told], [err for _, err in told])
