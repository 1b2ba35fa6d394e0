"""A baseline, a comment and pyproject.toml, for a script that `diagnose run` runs."""

import subprocess
import sys

import pytest

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.arange(512).reshape(128, 4).float() / 512
rows = TensorDataset(x, (x.sum(1) > 1).long())
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, labels in DataLoader(rows, batch_size=16):{comment}
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("project")


def run(folder, *options, comment=""):
    (folder / "train.py").write_text(SCRIPT.format(comment=comment))
    return subprocess.run(
        [sys.executable, "-m", "diagnostics", "run", "--second-look", "off", *options, "train.py"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def baseline(folder):
    assert run(folder, "--output", "baseline.json").returncode == 1
    return folder / "baseline.json"


def test_the_findings_of_a_baseline_do_not_fail_the_run(folder, baseline):
    ended = run(folder, "--baseline", baseline.name)
    assert ended.returncode == 0, ended.stderr
    assert "known finding in the baseline: sorted-by-label." in ended.stderr
    assert "warning: sorted-by-label" not in ended.stderr


def test_a_comment_on_the_line_of_a_finding_ignores_it(folder):
    ended = run(folder, comment="  # diagnose: ignore[sorted-by-label] a stream in order of time")
    assert ended.returncode == 0, ended.stderr
    assert "Ignored: sorted-by-label (a stream in order of time)." in ended.stderr


def test_fail_on_of_pyproject_decides_the_exit_code(folder):
    (folder / "pyproject.toml").write_text('[tool.diagnostics]\nfail-on = "error"\n')
    ended = run(folder)
    (folder / "pyproject.toml").unlink()
    assert ended.returncode == 0, ended.stderr
    assert "warning: sorted-by-label" in ended.stderr


def test_a_baseline_that_is_not_a_report_is_refused_before_the_script_runs(folder):
    ended = run(folder, "--baseline", "train.py")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "diagnose: train.py is not JSON: " in ended.stderr
