"""A crash in a graph whose tensors a script packs by hooks: explaining it unpacks none of them."""

import textwrap

import pytest

from tests.pytorch.run.started import DIAGNOSE

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def unpack(packed):
    print("unpacked", tuple(packed.shape))
    return packed


for step in range(3):
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        output = model(torch.randn(4, 8))
        loss = nn.functional.cross_entropy(output, torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
    output = model(torch.randn(4, 8))
    CRASH
"""
CRASHES = {
    "a shape": "nn.functional.cross_entropy(output, torch.zeros(3, dtype=torch.long)).backward()",
    "a second pass": "output.sum().backward(); output.sum().backward(); loss.backward()",
    "a label": "nn.functional.cross_entropy(output, torch.tensor([0, 1, 2, 3])).backward()",
}


@pytest.mark.parametrize("crash", CRASHES)
def test_explaining_a_crash_unpacks_nothing(torch_forks, tmp_path, crash):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT).replace("CRASH", CRASHES[crash]))
    plain = torch_forks.run("import runpy; runpy.run_path('train.py', run_name='__main__')", folder=tmp_path)
    observed = torch_forks.run(DIAGNOSE, "diagnose", "run", "train.py", folder=tmp_path, COLUMNS="100")
    assert plain.returncode == observed.returncode == 1
    assert observed.stdout == plain.stdout
    assert "unpacked" in plain.stdout
    assert "diagnostics itself" not in observed.stderr
