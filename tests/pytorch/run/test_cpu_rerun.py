import textwrap

import pytest

from diagnostics.run.cpu_rerun import run_again

# Its batch of step 30 has a label that the model has no output for; a loader of another order never comes to it.
LATE = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    labels = torch.randint(0, 3, (320,))
    labels[245] = 3
    loader = DataLoader(TensorDataset(torch.randn(320, 4), labels), batch_size=8)
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (x, y) in enumerate(loader):
        open("steps.txt", "a").write(f"{step}\\n")
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(LATE))
    return tmp_path


def kept(folder, **changes):
    """Write the batches that the script had at steps 29 and 30, or others."""
    import torch

    def save(path):
        torch.manual_seed(0)
        labels = torch.randint(0, 3, (2, 8))
        labels[1, 5] = changes.get("label", 3)
        torch.save([[torch.randn(8, 4), row] for row in labels], path)
        return 2

    return save


@pytest.mark.slow
class TestRunAgain:
    LINE = "train.py:13, loss = torch.nn.functional.cross_entropy(model(x), y)"
    FAILS = f"on the CPU it fails at {LINE}, with IndexError: Target 3 is out of bounds."

    def told(self, folder, again, capfd):
        errors = capfd.readouterr().err.replace("diagnose: running train.py once more, on the CPU, ", "")
        steps = (folder / "steps.txt").read_text().split()
        return again.summary.replace(f"{folder}/", ""), again.failed, errors.splitlines(), steps

    def test_gives_the_batches_of_the_failure_first_so_that_a_late_one_comes_at_once(self, script, capfd):
        again = run_again(["train.py"], str(script), 30, 120, kept(script))
        assert self.told(script, again, capfd) == (
            self.FAILS, True, ["with the last 2 batches first (Ctrl-C to stop)"], ["0", "1"],
        )  # fmt: skip

    @pytest.mark.exhaustive
    def test_goes_through_all_steps_where_these_batches_bring_no_failure(self, script, capfd):
        again = run_again(["train.py"], str(script), 30, 120, kept(script, label=0))
        told, failed, errors, steps = self.told(script, again, capfd)
        assert (told, failed) == (self.FAILS, True)
        assert errors == ["with the last 2 batches first (Ctrl-C to stop)", "up to step 30 (Ctrl-C to stop)"]
        assert steps == ["0", "1", *map(str, range(31))]

    @pytest.mark.exhaustive
    def test_goes_through_all_steps_where_no_batch_was_kept(self, script, capfd):
        again = run_again(["train.py"], str(script), 30, 120)
        assert self.told(script, again, capfd)[:3] == (self.FAILS, True, ["up to step 30 (Ctrl-C to stop)"])

    @pytest.mark.exhaustive
    def test_says_so_where_nothing_fails_on_the_cpu(self, script, capfd):
        again = run_again(["train.py"], str(script), 5, 120)
        told, failed, _, steps = self.told(script, again, capfd)
        assert told == "on the CPU it passed step 5 without an exception: the failure occurs only on the device"
        assert not failed
        assert steps == [*map(str, range(6))]

    def test_tells_the_exit_code_of_a_script_that_leaves_no_report(self, script, capfd):
        (script / "train.py").write_text("import os; open('steps.txt', 'w'); os.kill(os.getpid(), 9)")
        again = run_again(["train.py"], str(script), 5, 120)
        assert self.told(script, again, capfd)[0] == "on the CPU it ended with exit code -9, without a report"

    def test_gives_up_a_script_that_does_not_come_there(self, script, capfd):
        (script / "train.py").write_text(
            "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "open('steps.txt', 'w'); time.sleep(60)"
        )
        again = run_again(["train.py"], str(script), 5, 2)
        assert self.told(script, again, capfd)[0] == "on the CPU it did not finish within 4 s"
