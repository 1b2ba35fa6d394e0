"""`diagnose run` in a job whose hosts come and go: two agents of `torchrun --nnodes 1:2`, both on this host."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.support.ports import free_port

# The first rank trains alone until the second comes, both until that is killed, and then the first to the end.
TRAIN = """\
import os, time
import torch
import torch.distributed as dist
from torch import nn

round = len([name for name in os.listdir() if name.startswith("round") and name.endswith("-0")])
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
os.write(1, f"rank {rank} of {world}, restart {os.environ['TORCHELASTIC_RESTART_COUNT']}\\n".encode())
dist.barrier()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
inputs = torch.randn(512, 8)
labels = inputs[:, :3].argmax(1)
for step in range(12_000):
    rows = torch.randperm(512)[rank::world][:32]
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
    optimizer.step()
    if step == 20:
        open(f"round{round}-{rank}", "w").close()
    if round == 2 and step == 40:
        break
    time.sleep(0.01)
os.write(1, b"the end\\n")
dist.destroy_process_group()
"""
LIMIT_S = 120


class Agents:
    """Agents of `torchrun`, each with one rank."""

    def __init__(self, folder, *, observed):
        self.folder, self.started = folder, []
        folder.mkdir()
        (folder / "temporary").mkdir()
        (folder / "train.py").write_text(TRAIN)
        self._command = [
            sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc-per-node", "1",
            "--max-restarts", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{free_port()}",
            "--rdzv-conf", "last_call_timeout=1,keep_alive_interval=2,keep_alive_max_attempt=3",
            *(["-m", "diagnostics", "run", "--output", "r.json"] if observed else []), "train.py",
        ]  # fmt: skip

    def start(self):
        # With the store that agents share, PyTorch 2.13 waits in vain for the address after a host has joined.
        apart = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "TMPDIR": str(self.folder / "temporary")}
        agent = subprocess.Popen(
            self._command, cwd=self.folder, env={**os.environ, **apart, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.started.append(agent)
        return agent

    def await_step(self, name):
        until = time.monotonic() + LIMIT_S
        while not (self.folder / name).exists():
            assert self.started[0].poll() is None, name
            assert time.monotonic() < until, name
            time.sleep(0.05)

    def close(self):
        for agent in self.started:
            kill_with_its_rank(agent)


def kill_with_its_rank(agent):
    try:
        children = psutil.Process(agent.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    for process in (*children, agent):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    agent.communicate()


def run(folder, *, observed):
    """Let a second agent come and die; return the first's exit code and what its ranks printed."""
    agents = Agents(folder, observed=observed)
    try:
        first = agents.start()
        agents.await_step("round0-0")
        second = agents.start()
        agents.await_step("round1-1")
        kill_with_its_rank(second)
        out, err = first.communicate(timeout=LIMIT_S)
    finally:
        agents.close()
    return first.returncode, out.splitlines(), err


@pytest.mark.slow
@pytest.mark.exhaustive  # twelve processes; `TestRank` in test_ranks.py stands for it
def test_a_host_that_comes_and_goes(tmp_path):
    plain, observed = (run(tmp_path / name, observed=name == "observed") for name in ("plain", "observed"))
    rounds = ["rank 0 of 1, restart 0", "rank 0 of 2, restart 0", "rank 0 of 1, restart 1"]
    assert plain[:2] == (0, [*rounds, "the end"])
    assert observed[:2] == plain[:2], observed[2]
    titles = {file.name: json.loads(file.read_text())["title"] for file in (tmp_path / "observed").glob("r*.json")}
    assert sorted(titles) == ["r.json", "r.restart1.json", "r.restart2.json"]
    assert [name for name, title in titles.items() if "rank 0 of 2" in title] == ["r.restart1.json"]
    assert list((tmp_path / "observed" / "temporary").glob("diagnose-*")) == []
