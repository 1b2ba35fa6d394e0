"""`diagnose run` of a script that starts its ranks itself, by `torch.multiprocessing.spawn`."""

import json
import os
import re
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
import torch

from tests.support.ports import free_port
from tests.support.side_by_side import both as both

pytestmark = pytest.mark.slow

# HEAD stands above the guard, so that every process has it; each rank runs `main`.
DDP = """
    import sys

    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    def main(rank, world_size, port):
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
        torch.manual_seed(0)
        x = torch.randn(256, 8)
        y = x[:, :3].argmax(1) + SHIFT * rank
        rows = TensorDataset(x, y)
        loader = DataLoader(rows, 16, SAMPLING)
        model = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(3):
            if isinstance(loader.sampler, DistributedSampler):
                loader.sampler.set_epoch(epoch)
            for inputs, labels in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
        if rank == 0:
            print(f"loss={loss.item()!r}", [p.sum().item() for p in model.parameters()], flush=True)
        dist.barrier()  # or PyTorch may hang: see KEEPING in tests/support/two_ranks.py
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(main, args=(2, sys.argv[1]), nprocs=2)
    """
SHARED_OUT, ALIKE = "sampler=DistributedSampler(rows)", "shuffle=True"
RATES = """
    import torch
    import torch.multiprocessing as mp
    from torch import nn

    def fit(index, rates):
        torch.manual_seed(0)
        x = torch.randn(256, 8)
        rows = torch.utils.data.TensorDataset(x, x @ torch.randn(8, 1))
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=rates[index])
        for _ in range(10):
            for inputs, target in torch.utils.data.DataLoader(rows, 16, shuffle=True):
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(inputs), target)
                loss.backward()
                optimizer.step()
        with open(f"{index}.txt", "w") as file:
            file.write(repr(loss.item()))

    if __name__ == "__main__":
        mp.spawn(fit, args=([0.01, 0.05],), nprocs=2)
    """


def ddp(sampling, shift=0):
    return DDP.replace("SAMPLING", sampling).replace("SHIFT", str(shift))


def run(folder, text, *arguments, observed=True, options=()):
    (folder / "train.py").write_text(textwrap.dedent(text))
    ways = ["-m", "diagnostics", "run", "--output", "r.json", *options] if observed else []
    return subprocess.run(
        [sys.executable, *ways, "train.py", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def report_of(folder):
    return json.loads((folder / "r.json").read_text())


def test_healthy_ranks_give_the_same_and_are_silent(tmp_path):
    plain = run(tmp_path, ddp(SHARED_OUT), str(free_port()), observed=False)
    observed = run(tmp_path, ddp(SHARED_OUT), str(free_port()))
    assert (observed.returncode, observed.stdout) == (plain.returncode, plain.stdout)
    assert plain.stdout.startswith("loss=")
    assert own(observed.stderr) == plain.stderr
    report = report_of(tmp_path)
    assert report["findings"] == []
    assert [stage["name"].partition(" (")[0] for stage in report["stages"]] == ["rank 0", "rank 1"]


@pytest.mark.exhaustive  # exhibit 35 spawns such ranks, and the verification opens it
def test_ranks_are_compared(tmp_path):
    ended = run(tmp_path, ddp(ALIKE), str(free_port()))
    assert [finding["rule"] for finding in report_of(tmp_path)["findings"]] == ["ranks-share-rows"]
    assert ended.returncode == 1
    assert own(ended.stderr) == ""  # the ranks print nothing


@pytest.mark.exhaustive
def test_a_rank_that_fails_says_why(tmp_path):
    plain = run(tmp_path, ddp(SHARED_OUT, shift=3), str(free_port()), observed=False)
    observed = run(tmp_path, ddp(SHARED_OUT, shift=3), str(free_port()))
    assert (observed.returncode, observed.stdout) == (plain.returncode, plain.stdout) == (1, "")
    assert without_times(own(observed.stderr)) == without_times(plain.stderr)
    report = report_of(tmp_path)
    (finding,) = report["findings"]
    assert finding["rule"] == "labels-out-of-range"
    assert finding["message"].startswith("Rank 1")
    assert finding["where"]["file"].endswith("train.py")
    assert "is out of bounds" in next(stage["detail"] for stage in report["stages"] if stage["status"] == "failed")


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", [155, 200])
def test_a_bad_batch_stops_the_ranks_before_it_reaches_the_weights(tmp_path, place):
    broken = ddp(SHARED_OUT).replace("rows = Tensor", f'x[{place}] = float("nan")\n        rows = Tensor')
    stopped = run(tmp_path, broken, str(free_port()), options=("--stop-on", "error"))
    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert "TrainingStopped: error: non-finite-inputs in step " in stopped.stderr
    report = report_of(tmp_path)
    assert report["title"].endswith(", stopped by --stop-on error")
    assert [finding["rule"] for finding in report["findings"]] == ["non-finite-inputs"]
    *ranks, last = report["stages"]
    assert "stopped" in {stage["status"] for stage in ranks}
    assert (last["status"], report["crash"], report["exit_code"]) == ("stopped", None, 1)
    batches = [torch.load(file)["args"][0] for file in tmp_path.glob("r*.batch.pt")]
    assert any(batch.isnan().any() for batch in batches)


@pytest.mark.exhaustive
def test_processes_that_train_by_themselves_are_not_compared(tmp_path):
    ended = run(tmp_path, RATES)
    assert (ended.returncode, ended.stdout, own(ended.stderr)) == (0, "", "")
    assert report_of(tmp_path)["findings"] == []
    assert len(report_of(tmp_path)["stages"]) == 2


@pytest.mark.exhaustive
def test_what_cannot_be_pickled_fails_as_it_does(both):
    plain, observed = both("import torch.multiprocessing as mp\nmp.spawn(lambda rank: None, nprocs=2)")
    assert observed == plain
    assert "Can't pickle" in plain[2]


@pytest.mark.exhaustive
def test_a_script_with_a_module_of_our_name_starts_its_ranks(both, tmp_path):
    (tmp_path / "job").mkdir()
    log = "import os\n\ndef log(rank):\n    os.write(1, f'rank {rank}\\n'.encode())\n"
    (tmp_path / "job" / "diagnostics.py").write_text(log)
    text = "import diagnostics, torch.multiprocessing as mp\nif __name__ == '__main__': mp.spawn(diagnostics.log)"
    plain, observed = both(text, name="job/train.py")
    assert observed == plain == (0, "rank 0\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ranks outlive a parent that was killed")
def test_ranks_remove_their_reports_once_nobody_reads_them(tmp_path):
    text = ddp(SHARED_OUT).replace("range(3):", "range(9_999):\n            open(f'{rank}', 'w').close()")
    (tmp_path / "train.py").write_text(textwrap.dedent(text))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    script = subprocess.Popen(
        [sys.executable, "-m", "diagnostics", "run", "train.py", str(free_port())],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not ((tmp_path / "0").exists() and (tmp_path / "1").exists()) and time.monotonic() < until:
            time.sleep(0.05)
        ranks = ranks_of(script)
    finally:
        script.kill()
        script.wait()
    _, alive = psutil.wait_procs(ranks, timeout=60)
    for rank in alive:
        rank.kill()
    assert len(ranks) == 2
    assert alive == []
    assert list(temporary.glob("diagnose-*")) == []


def ranks_of(script):
    children = psutil.Process(script.pid).children()
    return [child for child in children if any("spawn_main" in word for word in child.cmdline())]


def own(errors):
    """Leave out where the report is."""
    return re.sub(r"^diagnose: the report is in .*\n", "", errors, flags=re.M)


def without_times(text):
    """Leave out what PyTorch logs before its message: the time and the process."""
    return re.sub(r"^W\d+ [\d:.]+ \d+ |process \d+ via|line \d+, in \w*\n(?= +\^)", "", text, flags=re.M)
