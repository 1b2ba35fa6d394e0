"""A release of PyTorch that lacks one of the private names that this library needs in a script's calls."""

import pytest

from diagnostics.collectors.system.supported import PRIVATE
from tests.pytorch.run.started import DIAGNOSE

SCRIPT = """
import torch

torch.manual_seed(0)
x = torch.randn(64, 4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize("names", [PRIVATE[0], "_C._current_graph_task_id", "_C._get_tracing_state", PRIVATE[-1]])
def test_a_release_without_it_is_not_observed_and_the_script_runs_as_without_us(torch_forks, tmp_path, names):
    (tmp_path / "train.py").write_text(SCRIPT)
    path, *other = names.split(" or ")
    place, _, name = path.rpartition(".")
    lacking = "import torch\n" + "".join(f"vars(torch.{place}).pop({one!r}, None)\n" for one in (name, *other))
    plain = torch_forks.run(
        f"{lacking}import runpy; runpy.run_path('train.py', run_name='__main__')", folder=tmp_path
    )
    observed = torch_forks.run(lacking + DIAGNOSE, "diagnose", "run", "train.py", folder=tmp_path, COLUMNS="200")
    assert (observed.returncode, observed.stdout) == (plain.returncode, plain.stdout)
    said = " ".join(observed.stderr.split())
    assert f"is not supported yet: it has no torch.{path}. Upgrade this library" in said
    assert "diagnostics itself" not in said
