"""The harness notices whatever an observer may change. Each observer here runs the script, and meddles with it."""

import textwrap

import pytest

from tests.side_effects.harness import compare

SCRIPT = """
    import random
    from pathlib import Path

    class Rows:
        def __init__(self):
            self.seen = []

        def __getitem__(self, row):
            return row

        def __iter__(self):
            yield from range(3)

    rows, total = Rows(), sum(Rows()[row] for row in range(4))
    Path("log.txt").write_text(f"total {total}, took 0.{random.SystemRandom().randrange(10**6)} s")
    print(f"took 1.{random.SystemRandom().randrange(10**6)} s")
"""
OBSERVER = """
import os, sys, types
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
module = sys.modules["__main__"] = types.ModuleType("__main__")
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"), vars(module))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def differences(script, meddling):
    return compare(script, observer=("-c", OBSERVER + meddling)).differences


def test_an_observer_that_changes_nothing_shows_no_difference(script):
    assert differences(script, "") == []


@pytest.mark.parametrize(
    ("meddling", "difference"),
    [
        ("import random; random.random()", "random state of Python"),
        ("import numpy; numpy.random.rand()", "random state of NumPy"),
        ("print('done')", "standard output, line 2: 'nothing' plain, 'done' observed"),
        ("sys.exit(1)", "exit code: 0 plain, 1 observed"),
        ("open('extra.txt', 'w').close()", "file extra.txt"),
        ("open('log.txt', 'a').write('!')", "file log.txt"),
        ("module.total += 1", "total: 6 plain, 7 observed"),
        ("module.rows.seen.append(1)", "len(rows.seen): 0 plain, 1 observed"),
        ("module.rows[0]", "reads of Rows.__getitem__: 4"),
        ("next(iter(module.rows))", "reads of Rows.__iter__: None plain"),
        ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", "signal handlers"),
        ("import os; os.environ['ADDED'] = '1'", "environment"),
        ("import os; os.chdir('/')", "working directory"),
        ("held = b'1' * 2**29", "peak of memory, MiB"),
    ],
)
def test_a_change_is_named(script, meddling, difference):
    found = differences(script, meddling)
    assert any(line.startswith(difference) for line in found), found


TRAINING = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 4)).square().mean()
        loss.backward()
        optimizer.step()
"""


def test_spaces_with_which_a_progress_bar_covers_a_longer_line_show_no_difference(script):
    # Only the plain run has a __file__.
    script.write_text("print('1/3 loss', end='\\r')\nprint('3/3' + ' ' * (5 if '__file__' in globals() else 2))\n")
    assert differences(script, "") == []


@pytest.mark.slow
def test_a_script_that_does_not_seed_pytorch_shows_no_difference(script):
    script.write_text("import torch\n\nvalues = torch.rand(3)\n")
    assert differences(script, "import torch") == []


@pytest.mark.slow
def test_changes_of_a_training_are_named(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(TRAINING))
    meddling = """
import torch
torch.rand(1)
m = module.model
with torch.no_grad():
    m[0].weight[0, 0].add_(1)
m[2].weight.grad.zero_()
m[1].eval()
m[2].register_forward_hook(lambda *_: None)
m[2].bias.requires_grad_(False)
module.optimizer.state[m[0].bias]["exp_avg"].zero_()
module.optimizer.param_groups[0]["lr"] = 0.02
torch.set_grad_enabled(False)
"""
    found = [line.partition(": ")[0] for line in differences(script, meddling)]
    assert found == [
        "PyTorch's settings",
        "model.0.weight",
        "model.1 mode and hooks",
        "model.2 mode and hooks",
        "model.2.bias.requires_grad",
        "model.2.weight.grad",
        "optimizer.state_dict()['param_groups'][0]['lr']",
        "optimizer.state_dict()['state'][1]['exp_avg']",
        "random state of PyTorch",
    ]
