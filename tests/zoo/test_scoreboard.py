"""A tool is asked about a script from the point where its training begins, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scoreboard import cost
from tests.scoreboard.record import load_tools

SCRIPT = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train = [torch.ones(4, 2)] * 3
print("prepared")
for batch in train:
    optimizer.zero_grad()
    loss = (model(batch) * 0).sqrt().sum()  # its gradient is 0 times infinity
    loss.backward()
    optimizer.step()
print("never reached: the evaluation is not part of it")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_each_tool_gets_the_prepared_script_and_its_answers_are_written(tmp_path: Path) -> None:
    script = tmp_path / "11_made_up" / "train.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "tests.scoreboard.ask", script, tmp_path, "plain", "anomaly_mode"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    plain, asked = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("plain", "anomaly_mode"))
    assert (plain["answers"], plain["ended"]) == ([], "")
    (answer,) = asked["answers"]
    assert (answer["kind"], answer["severity"], answer["times"]) == ("NaN in backward", "error", 1)
    assert answer["message"].startswith("Function 'MulBackward0' returned nan values")
    assert asked["ended"].startswith("RuntimeError: Function 'MulBackward0'")
    assert plain["cpu_s"] > 0


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_a_tool_that_ends_the_training_has_no_cost(tmp_path: Path) -> None:
    script = tmp_path / "11_made_up" / "train.py"
    script.parent.mkdir()
    tool = load_tools()["anomaly_mode"]
    script.write_text(SCRIPT)
    assert cost._pair(script, tool, first=True) is None
    script.write_text(SCRIPT.replace(".sqrt()", ""))
    used = cost._pair(script, tool, first=False)
    assert used is not None
    assert min(used) > 0
