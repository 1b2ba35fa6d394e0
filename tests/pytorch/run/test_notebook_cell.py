"""`%%diagnose` above a cell that trains: the same bits, and the report after it."""

import gc
import sys
import weakref
from pathlib import Path

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from nbformat import v4

from tests.support.ipython import notebook

SETUP = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
inputs = torch.randn(256, 8)
labels = inputs[:, :3].argmax(1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""
TRAINS = """
for epoch in range(6):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
        loss.backward()
        optimizer.step()
print(f"{epoch} {loss.item():.6f}")
"""
NEVER_ZEROED = TRAINS.replace("        optimizer.zero_grad()\n", "")


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with notebook(tmp_path) as started:
        started.run("%load_ext diagnostics")
        started.run(SETUP)
        yield started
        started.run("%unload_ext diagnostics")


def end_state(cells):
    """Return everything that a training leaves behind, as bits."""
    parts = [*cells["model"].parameters(), cells["loss"].detach(), torch.get_rng_state().float()]
    parts += [value for state in cells["optimizer"].state.values() for value in state.values()]
    return [part.detach().clone() for part in parts]


def hooked():
    """Name the functions of PyTorch that are replaced."""
    owners = (torch.nn.Module, torch.optim.Optimizer, torch.autograd, torch.Tensor, torch.utils.data.DataLoader)
    found = []
    for owner in owners:
        for name, value in vars(owner).items():
            code = getattr(value, "__code__", None)
            if code is not None and "diagnostics" in code.co_filename:
                found.append(f"{owner.__name__}.{name}")
    return found


def test_a_training_gives_the_same_bits_and_the_same_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ends = []
    for line in ("", "%%diagnose\n"):
        with notebook(tmp_path) as cells:
            cells.run("%load_ext diagnostics")
            cells.run(SETUP)
            names = set(cells.shell.user_ns)
            assert cells.run(line + TRAINS.strip("\n")).success
            ends.append((end_state(cells), capsys.readouterr().out, set(cells.shell.user_ns) - names))
            assert len(cells.reports) == len(line and "1")
            cells.run("%unload_ext diagnostics")
    (plain, printed, named), (observed, printed_too, named_too) = ends
    assert all(torch.equal(one, other) for one, other in zip(plain, observed, strict=True))
    assert (printed, named) == (printed_too, named_too)
    assert printed.startswith("5 0.")


def test_names_the_bug_of_the_cell_and_is_silent_on_a_sound_one(cells):
    assert cells.run("%%diagnose sound\n" + TRAINS).success
    assert cells["sound"].ok, str(cells["sound"])
    assert "48 steps" in str(cells["sound"]) or cells["sound"].history.steps.total_steps == 48
    cells.run(SETUP)
    assert cells.run("%%diagnose broken\n" + NEVER_ZEROED).success
    assert "gradients-not-zeroed" in [finding.rule for finding in cells["broken"].findings]
    assert len(cells.reports) == 2


def test_the_same_cell_can_be_run_again_and_its_findings_ignored(cells):
    for name in ("first", "second"):
        cells.run(f"%%diagnose {name} --ignore gradients-not-zeroed\n" + NEVER_ZEROED)
        assert cells[name].history.steps.total_steps == 48
        assert cells[name].ignored == {"gradients-not-zeroed": ""}


def test_nothing_of_the_observers_stays(cells):
    before = hooked(), list(sys.meta_path)
    cells.run("%%diagnose\n" + TRAINS)
    assert (hooked(), list(sys.meta_path)) == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in cells["model"].modules())
    assert not cells["optimizer"]._optimizer_step_post_hooks
    model = weakref.ref(cells["model"])
    for name in ("model", "optimizer", "loss"):
        del cells.shell.user_ns[name]
    cells.shell.last_execution_result = None
    cells.results.clear()
    gc.collect()
    assert model() is None


def test_an_exception_in_a_training_is_shown_without_our_frames_and_explained(cells, capsys):
    wrong = TRAINS.replace("labels[rows])", "labels[rows] + 1)")
    capsys.readouterr()
    cells.run(wrong.lstrip("\n"))
    plain = capsys.readouterr().out.replace("Cell In[3]", "Cell In")
    cells.run(SETUP)
    result = cells.run("%%diagnose report\n" + wrong.lstrip("\n"))
    shown = capsys.readouterr().out
    assert isinstance(result.error_in_exec, IndexError)
    assert "diagnostics" not in shown
    assert shown.splitlines()[-1] == plain.splitlines()[-1] == "IndexError: Target 3 is out of bounds."
    assert "labels-out-of-range" in [finding.rule for finding in cells["report"].findings]
    assert cells["report"].findings[0].where.file == "In[5]"


def test_ctrl_c_in_a_training_reports_what_was_seen(cells):
    stops = TRAINS.replace(
        "        optimizer.step()", "        optimizer.step()\n        if epoch == 2: raise KeyboardInterrupt"
    )
    result = cells.run("%%diagnose report\n" + stops)
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert "interrupted" in cells["report"].title
    assert cells["report"].history.steps.total_steps == 17
    assert cells["report"].crash is None


def test_in_a_real_kernel(tmp_path, monkeypatch):
    """The report is an output of the cell, and a cell that fails ends a run of all."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    cells = [
        v4.new_code_cell("%load_ext diagnostics"),
        v4.new_code_cell(SETUP),
        v4.new_code_cell("%%diagnose\n" + NEVER_ZEROED),
        v4.new_code_cell("%%diagnose\nimport asyncio\nawait asyncio.sleep(0)\nraise KeyError('lr')"),
        v4.new_code_cell("print('not reached')"),
    ]
    made = v4.new_notebook(cells=cells)
    client = NotebookClient(
        made, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    with pytest.raises(Exception, match="KeyError"):
        client.execute()
    nbformat.validate(made)
    trained, failed, unreached = (cell.outputs for cell in made.cells[2:])
    (report,) = [output.data for output in trained if output.output_type == "display_data"]
    assert "gradients-not-zeroed" in report["text/plain"]
    assert report["text/html"].startswith('<div class="diagnostics-report">')
    assert [output.output_type for output in trained] == ["stream", "display_data"]
    assert [output.output_type for output in failed] == ["error", "display_data"]
    assert unreached == []
