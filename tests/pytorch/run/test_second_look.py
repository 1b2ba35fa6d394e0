"""The second look of `diagnose run`: what it says, and that the script cannot notice it."""

import json
import os
import signal
import textwrap
import threading
import time

import pytest
import torch
from torch import nn

from diagnostics.collectors.isolation.sandbox import can_sandbox
from diagnostics.run.observer import ScriptObserver
from diagnostics.run.second_look import LEAST_S, MOST_S, SecondLook, _interrupted_after, budget

MIXED = """
    import torch
    from torch import nn

    def main():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3), nn.LogSoftmax(dim=0))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for step in range(30):
            x = torch.randn(32, 8)
            loss = nn.functional.nll_loss(model(x), x[:, :3].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item())

    main()
    """


@pytest.fixture
def run(torch_forks, tmp_path):
    """Run `diagnose run OPTIONS` on a text; return its report."""

    def run(text, *options):
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        arguments = ["diagnose", "run", "--output", "r.json", "--quiet", *options, "train.py"]
        torch_forks.run(
            "import sys; from diagnostics.cli.main import main; sys.exit(main())", *arguments, folder=tmp_path
        )
        return json.loads((tmp_path / "r.json").read_text())

    return run


def stage(report):
    return next((s for s in report["stages"] if s["name"] == "second look"), None)


def test_a_model_that_its_function_has_freed_is_looked_at(run):
    report = run(MIXED)
    assert [f["rule"] for f in report["findings"] if f["severity"] == "error"] == ["examples-mixed"]
    assert stage(report)["status"] == "passed"
    assert report["faults"] == []


def test_it_can_be_switched_off(run):
    report = run(MIXED, "--second-look", "off")
    assert stage(report) is None
    assert "examples-mixed" not in [f["rule"] for f in report["findings"]]


COUNTING = MIXED.replace(
    "    def main",
    """    class Own(nn.Module):
        def forward(self, x):
            print("called")
            open("calls.txt", "a").write("x")
            return x

    def main""",
).replace("nn.Linear(16, 3),", "nn.Linear(16, 3), Own(),")


@pytest.mark.skipif(not can_sandbox(), reason="needs Linux 6.2 with Landlock")
def test_a_model_with_side_effects_is_examined_without_them(run, tmp_path):
    report = run(COUNTING)
    assert [f["rule"] for f in report["findings"] if f["severity"] == "error"] == ["examples-mixed"]
    assert stage(report)["status"] == "passed"
    assert (tmp_path / "calls.txt").read_text() == "x" * 30


@pytest.mark.skipif(not can_sandbox(), reason="needs Linux 6.2 with Landlock")
def test_a_copy_of_a_model_with_side_effects_is_trained(run, tmp_path):
    dead = COUNTING.replace("nn.LogSoftmax(dim=0))", "nn.LogSoftmax(dim=-1)); model[0].bias.data.fill_(-100)")
    report = run(dead.replace("range(30)", "range(150)"), "--second-look", "20")
    assert "trained a copy on one batch" in stage(report)["detail"]
    assert (tmp_path / "calls.txt").read_text() == "x" * 150


LAMBDA = MIXED.replace(
    "    def main():",
    """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = parts = nn.ModuleDict({"widen": nn.Linear(16, 32), "narrow": nn.Linear(32, 16)})
            self.chain = lambda x: parts.narrow(torch.tanh(parts.widen(x)))

        def forward(self, x):
            return x + self.chain(x)

    def main():""",
).replace("nn.Linear(16, 3),", "Block(), nn.Linear(16, 3),")


@pytest.mark.skipif(not can_sandbox(), reason="needs Linux 6.2 with Landlock")
def test_a_block_that_calls_its_parts_in_a_lambda_is_looked_at(run):
    report = run(LAMBDA)
    assert [f["rule"] for f in report["findings"] if f["severity"] == "error"] == ["examples-mixed"]
    assert stage(report)["status"] == "passed"


def test_a_model_with_side_effects_is_not_run_without_a_sandbox(run, tmp_path):
    report = run(
        "from diagnostics.collectors.isolation import sandbox\nsandbox._landlock_version = lambda: 0\n"
        + textwrap.dedent(COUNTING)
    )
    assert stage(report)["status"] == "not judged"
    assert "running it could be noticed" in stage(report)["detail"]
    assert (tmp_path / "calls.txt").read_text() == "x" * 30


def test_a_model_that_cannot_run_its_batch_again_is_not_called_tested(run):
    report = run(COUNTING.replace('open("calls.txt", "a").write("x")', 'import os; os.system("true")'))
    assert stage(report)["status"] == "not judged"
    assert "a copy of its model raised SideEffect: os.system" in stage(report)["detail"]


def test_a_script_that_fails_gets_its_report_at_once(run):
    report = run(MIXED.replace("print(loss.item())", "raise RuntimeError('no')"))
    assert stage(report) is None


def test_the_budget_is_a_tenth_of_the_run_within_bounds():
    assert (budget(None, 2), budget(None, 100), budget(None, 9000)) == (LEAST_S, 10.0, MOST_S)
    assert budget(5.0, 9000) == 5.0


def test_nothing_is_said_where_nothing_was_kept():
    assert SecondLook().look([], 1.0) is None


class TestInterrupt:
    def test_ctrl_c_ends_it_whatever_the_scripts_handler(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt), _interrupted_after(60):
                time.sleep(30)
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        finally:
            signal.signal(signal.SIGINT, before)

    def test_so_does_the_end_of_its_time(self):
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt), _interrupted_after(0.3):
            [time.sleep(0.01) for _ in range(3000)]
        assert time.monotonic() - begun < 10

    def test_it_says_that_nothing_was_tested(self):
        second, training = SecondLook(), object()
        second.keep(training, lambda *_: [time.sleep(0.01) for _ in range(3000)])
        stage = second.look([training], 0.3)
        assert stage.detail == "stopped after 0.3 s, before it had tested what the predictions depend on"


class TestTrainedAgain:
    """A copy is trained on the first batch, where the run did not learn."""

    @staticmethod
    def observed(bias=0.0, unrelated=False, steps=150):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
        model[0].bias.data.fill_(bias)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        run = ScriptObserver(looks_again=True)
        try:
            for _ in range(steps):
                x = torch.randn(32, 8)
                labels = torch.randint(3, (32,)) if unrelated else x[:, :3].argmax(1)
                loss = nn.functional.cross_entropy(model(x), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        finally:
            run.close()
        before = [p.detach().clone() for p in model.parameters()], torch.get_rng_state()
        detail = run.look_again(60).detail
        assert run.faults == []
        assert all(map(torch.equal, before[0], model.parameters()))
        assert torch.equal(before[1], torch.get_rng_state())
        return run, detail

    def test_model_that_is_dead_cannot_memorise_its_batch(self):
        run, detail = self.observed(bias=-50.0)
        assert "trained a copy on one batch" in detail
        found = {finding.rule for finding in run.trainings[0].examined.findings}
        assert "cannot-overfit-one-batch" in found

    def test_labels_of_noise_are_memorised_and_the_model_is_cleared(self):
        run, detail = self.observed(unrelated=True)
        assert "trained a copy on one batch" in detail
        examined = run.trainings[0].examined
        assert examined.ok, str(examined)
        assert "cannot-overfit-one-batch" in examined.judged
        (finding,) = [f for f in run.course(run.trainings[0]).findings if f.rule == "not-learning"]
        assert "cannot-overfit-one-batch" in finding.evidence["ruled_out"]

    def test_run_that_learned_is_not_trained_again(self):
        _, detail = self.observed()
        assert "trained on" not in detail
