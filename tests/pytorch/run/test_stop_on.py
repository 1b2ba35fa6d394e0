"""`diagnose run --stop-on`, and a script that is looked at while it runs."""

import json
import os
import subprocess
import sys
import textwrap
import time

import torch

from tests.pytorch.run.started import run

SCRIPT = """
    import hashlib, os, resource, signal, sys, time
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    inputs = torch.randn(384, 8)
    labels = inputs[:, :3].argmax(1)
    BEFORE
    try:
        for step in range(24):
            CHECKPOINT
            rows = slice(16 * step, 16 * step + 16)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            try:
                optimizer.step()
            except Exception:
                print("caught")
    finally:
        state = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
        print(step, hashlib.sha256(state).hexdigest(), torch.rand(2).tolist(), flush=True)
    """
BAD = "inputs[163] = float('nan')"  # of step 10
SAVE = 'torch.save(model.state_dict(), "model.pt")'


def script(before="", checkpoint="pass"):
    return textwrap.dedent(SCRIPT).replace("BEFORE", before).replace("CHECKPOINT", checkpoint)


def test_bad_batch_reaches_neither_weights_nor_checkpoint_and_is_saved(tmp_path):
    done = run(tmp_path, script(BAD, SAVE), "--stop-on", "error", "--output", "report.json")
    assert done.returncode == 1
    assert done.stdout.startswith("10 ")
    assert "caught" not in done.stdout
    kept = torch.load(tmp_path / "model.pt")
    assert all(value.isfinite().all() for value in kept.values())
    batch = torch.load(tmp_path / "report.batch.pt")
    assert (batch["step"], batch["rows"]) == (10, (3,))
    assert batch["args"][0].isnan().any(1).nonzero().tolist() == [[3]]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["title"].endswith(", stopped by --stop-on error")
    assert [finding["rule"] for finding in report["findings"]] == ["non-finite-inputs"]
    assert (report["exit_code"], report["crash"], report["faults"]) == (1, None, [])
    assert report["stages"][-1] == {
        "name": "end of the run",
        "status": "stopped",
        "detail": f"stopped by --stop-on error. The batch is in {tmp_path / 'report.batch.pt'}.",
    }
    trace, _, said = done.stderr.partition("diagnostics.errors.TrainingStopped: ")
    assert said.startswith("error: non-finite-inputs in step 10.")
    assert "train.py" in trace
    assert os.path.join("diagnostics", "") not in trace
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model.pt", "report.batch.pt", "report.json", "train.py"
    ]  # fmt: skip


def test_the_run_of_a_healthy_script_is_the_same(plain, tmp_path):
    alone = plain(script())
    done = run(tmp_path, script(), "--fail-on", "never", "--stop-on", "warning")
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (0, alone.stdout)
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"]


def test_a_full_disk_costs_the_batch_and_not_the_stop(tmp_path):
    full = f"resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); {BAD}"
    done = run(tmp_path, script(full), "--stop-on", "error", "--output", "report.json")
    assert (done.returncode, done.stdout[:3]) == (1, "10 ")
    assert "The batch was not saved: " in done.stderr
    assert "report.json cannot be written: File too large." in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"]


def test_attach_leaves_the_run_and_its_handler_of_sigusr1_alone(plain, tmp_path):
    handler = "calls = []; signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))"
    slow = 'open("began", "a").close(); os.path.exists("go") or time.sleep(1)'  # until it was asked
    text = script(handler, slow) + 'print("calls", calls)\n'
    alone = plain(script(handler) + 'print("calls", calls)\n').stdout
    (tmp_path / "train.py").write_text(text)
    command = [sys.executable, "-m", "diagnostics", "run", "--fail-on", "never", "train.py"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        while not (tmp_path / "began").exists():
            time.sleep(0.05)
        attach = [sys.executable, "-m", "diagnostics", "attach", str(running.pid), "--format", "json"]
        asked = subprocess.run(attach, capture_output=True, text=True)
        (tmp_path / "go").touch()
        out, err = running.communicate()
    assert asked.returncode == 0, asked.stderr
    report = json.loads(asked.stdout)
    assert report["title"].startswith("running train.py, ")
    assert report["stages"][-1]["detail"].startswith("the script is still running, after ")
    assert (running.returncode, out.decode()) == (0, alone)
    assert alone.endswith("calls []\n")
    assert b"running train.py" not in err
