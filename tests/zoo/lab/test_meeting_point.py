"""Ranks meet at a file of their own, on the loopback interface, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ASK = "import os; from bugs import lab; print(lab.meeting_point(), os.environ['GLOO_SOCKET_IFNAME'])"
WAIT = """\
import os

import torch.distributed as dist
import torch.multiprocessing as mp

from bugs import lab


def meet(rank, place):
    open("rank", "w").write(str(os.getpid()))
    dist.init_process_group("gloo", init_method=place, rank=0, world_size=2)  # the other never comes


if __name__ == "__main__":
    mp.spawn(meet, args=(lab.meeting_point(),), nprocs=1)
"""


def test_its_folder_goes_with_the_process(tmp_path: Path) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, env={"TMPDIR": str(tmp_path)}, check=True
    )
    place, interface = asked.stdout.split()
    assert place.startswith(f"file://{tmp_path}/bug-zoo-ranks-")
    assert interface == ("lo0" if sys.platform == "darwin" else "lo")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C goes to the console's processes in another way")
def test_ctrl_c_ends_ranks_that_wait_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WAIT)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    script = subprocess.Popen(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "rank").exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(2)
        os.killpg(script.pid, signal.SIGINT)
        assert script.wait(timeout=40) != 0
        rank = int((tmp_path / "rank").read_text())
        assert not Path(f"/proc/{rank}").exists()
        assert list(temporary.glob("bug-zoo-*")) == []
    finally:
        if script.poll() is None:
            os.killpg(script.pid, signal.SIGKILL)
        script.wait()
