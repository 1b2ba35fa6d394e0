"""`diagnostics.LightningCallback` in real fits of Lightning."""

import copy
import io
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import lightning as L
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn

import diagnostics
from tests.stacks.lightning_programs import BROKEN, HEALTHY, NoOptimizer, autoencoder, classifier, fine_tuned
from tests.stacks.test_stacks import ENVIRONMENT, ROOT, named, told

CHILD_SECONDS = 300
pytestmark = pytest.mark.filterwarnings("ignore")  # of Lightning: few workers, a small log interval


def watched(program, **options):
    """Fit a program with the callback; return the callback's report."""
    callback = diagnostics.LightningCallback(every=1, quiet=True)
    program.fit([callback], **options)
    return callback.report()


def end_of(program, trainer):
    """Return all that a fit leaves behind, as one value to compare."""
    metrics = {name: value.item() for name, value in trainer.callback_metrics.items()}
    optimizers = [optimizer.state_dict() for optimizer in trainer.optimizers]
    stream = io.BytesIO()
    torch.save((program.module.state_dict(), optimizers), stream)
    draws = random.random(), np.random.rand(), torch.rand(1).item()
    return stream.getvalue(), metrics, draws, trainer.global_step, sorted(vars(program.module))


def hooks_on(module):
    tables = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")
    return [name for name, part in module.named_modules() for table in tables if getattr(part, table)]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_fit_gets_a_clean_report_and_the_same_bits(name):
    plain = HEALTHY[name]()
    without = end_of(plain, plain.fit())
    program = HEALTHY[name]()  # reseeded
    called = nn.Module.__call__
    callback = diagnostics.LightningCallback(every=1, quiet=True)
    trainer = program.fit([callback])
    assert end_of(program, trainer) == without
    assert hooks_on(program.module) == []
    assert nn.Module.__call__ is called
    assert all(not optimizer._optimizer_step_pre_hooks for optimizer in trainer.optimizers)
    report = callback.report().as_dict()
    assert report["ok"], told(report)
    assert report["faults"] == []
    assert report["title"].startswith(f"watched {trainer.global_step} steps of {type(program.module).__name__}")


@pytest.mark.parametrize("name", [name for name, (_, rules, _) in BROKEN.items() if rules])
def test_a_broken_fit_is_named(name):
    make, rules, _ = BROKEN[name]
    report = watched(make()).as_dict()
    assert rules <= set(named(report["findings"])), told(report)
    assert report["faults"] == []


class TestWhatIsWatched:
    def test_forward_passes_are_seen_where_training_step_calls_a_part(self):
        report = watched(HEALTHY["regression"]())
        stages = {stage.name: stage for stage in report.stages}
        assert stages["forward passes"].status == "passed", report
        assert "net.0" in report.history.gradients.layers

    def test_a_step_is_an_optimizer_step_and_its_loss_the_mean_of_its_batches(self):
        program = fine_tuned()
        losses = []

        class Kept(L.Callback):
            def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
                losses.append(outputs["loss"].item() * trainer.accumulate_grad_batches)

        callback = diagnostics.LightningCallback(every=1, quiet=True)
        program.fit([Kept(), callback], max_epochs=1)
        seen = callback.report().history.losses.values
        expected = [np.mean(losses[at : at + 4]) for at in range(0, len(losses), 4)]
        np.testing.assert_allclose(seen, expected, rtol=1e-5)

    def test_the_gradients_of_a_step_are_those_after_clipping(self):
        program = fine_tuned()
        report = watched(program, max_epochs=2, gradient_clip_val=0.01)
        norms = report.history.gradients.norms
        assert norms.shape[0] == 6
        assert norms.max() <= 0.0101

    def test_the_validation_loss_is_recorded_but_not_that_of_the_sanity_check(self):
        program = classifier()
        report = watched(program, max_epochs=2)
        assert len(report.history.evaluations.losses) == 2

    def test_a_nan_is_located_in_the_step_and_the_part_where_it_began(self):
        report = watched(BROKEN["log_of_zero"][0]())
        (finding,) = [one for one in report.findings if one.rule == "non-finite-loss"]
        assert "step 0" in finding.message, finding.message

    def test_several_backward_passes_of_manual_optimization_leave_the_loss_unjudged(self):
        source = (Path(__file__).parent / "healthy" / "lightning_manual_gan.py").read_text()
        callback = diagnostics.LightningCallback(every=1, quiet=True)
        changed = source.replace("trainer = L.Trainer(", "trainer = L.Trainer(callbacks=[callback], ")
        exec(compile(changed, "gan", "exec"), {"callback": callback, "__name__": "gan"})
        report = callback.report()
        assert report.ok, report
        (loss,) = [stage for stage in report.stages if stage.name == "loss"]
        assert loss.status == "not judged"
        assert "several backward passes" in loss.detail

    def test_a_second_fit_begins_anew(self):
        callback = diagnostics.LightningCallback(quiet=True)
        classifier().fit([callback], max_epochs=2)
        classifier().fit([callback], max_epochs=1)
        assert callback.report().title.startswith("watched 12 steps of Classifier with a Lightning Trainer")

    def test_what_is_logged_goes_to_the_logger(self):
        logged = []
        callback = diagnostics.LightningCallback(
            every=1, quiet=True, logger=lambda values, step: logged.append(step)
        )
        classifier().fit([callback], max_epochs=1)
        assert logged[0] == 0
        assert logged[-1] == 11

    def test_a_fixed_batch_is_shown_over_time(self):
        program = classifier()
        x, y = next(iter(program.validation))
        batch = diagnostics.FixedBatch(x[:4], y[:4], nn.functional.cross_entropy)
        callback = diagnostics.LightningCallback(quiet=True, fixed_batch=batch, histograms=True)
        program.fit([callback], max_epochs=1)
        report = callback.report()
        assert report.faults == ()
        assert report.fixed_batch is not None
        assert report.histograms


class TestTheEnd:
    def test_a_bad_fit_is_told_on_stderr_and_a_good_one_is_not(self, capsys):
        BROKEN["loss_not_returned"][0]().fit([diagnostics.LightningCallback()], max_epochs=1)
        assert "unchanged-parameters" in capsys.readouterr().err
        classifier().fit([diagnostics.LightningCallback()], max_epochs=1)
        assert "watched" not in capsys.readouterr().err

    def test_an_exception_ends_the_watch_and_passes(self, capsys):
        program = classifier()

        class Stops(L.Callback):
            def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
                if batch_idx == 3:
                    raise OSError("the disk is full")

        callback = diagnostics.LightningCallback(every=1)
        with pytest.raises(OSError, match="the disk is full"):
            program.fit([callback, Stops()])
        assert hooks_on(program.module) == []
        assert callback.report().title.startswith("watched 4 steps")

    def test_an_exception_before_the_first_forward_pass_leaves_nothing(self):
        program, called = classifier(), nn.Module.__call__

        class Stops(L.Callback):
            def on_train_batch_start(self, trainer, module, batch, batch_idx):
                raise OSError("no batch")

        with pytest.raises(OSError, match="no batch"):
            program.fit([diagnostics.LightningCallback(), Stops()])
        assert nn.Module.__call__ is called

    def test_a_module_without_an_optimizer_is_told(self):
        program = autoencoder(NoOptimizer)
        assert "configure_optimizers returned None" in watched(program, max_epochs=1).title


class TestCheckpoints:
    def saved(self, folder, callbacks):
        program = autoencoder()
        keeper = ModelCheckpoint(dirpath=folder, save_last=True)
        program.fit([keeper, *callbacks], max_epochs=2, enable_checkpointing=True)
        return torch.load(folder / "last.ckpt", weights_only=True)

    def test_a_checkpoint_holds_nothing_of_it_and_a_fit_resumes_from_it(self, tmp_path):
        callback = diagnostics.LightningCallback(quiet=True)
        plain, with_it = self.saved(tmp_path / "plain", []), self.saved(tmp_path / "watched", [callback])
        assert with_it.keys() == plain.keys()
        assert [key.partition("{")[0] for key in with_it["callbacks"]] == ["ModelCheckpoint"]
        assert all(torch.equal(with_it["state_dict"][name], one) for name, one in plain["state_dict"].items())
        program, again = autoencoder(), diagnostics.LightningCallback(quiet=True)
        program.make_trainer([again], max_epochs=3).fit(
            program.module, program.data, ckpt_path=tmp_path / "watched" / "last.ckpt"
        )
        assert "from its step 24 on, which counts as 0" in again.report().title

    def test_a_copy_has_the_arguments_and_has_watched_nothing(self):
        callback = diagnostics.LightningCallback(every=3, trace_steps=[1], quiet=True)
        classifier().fit([callback], max_epochs=1)
        for made in (pickle.loads(pickle.dumps(callback)), copy.deepcopy(callback)):
            assert made.__getstate__() == callback.__getstate__()
            assert made.report().title == "watched nothing: no training has begun in this process"


SCRIPT = """
import {package} as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import diagnostics


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr={rate})


if __name__ == "__main__":
    pl.seed_everything(0, verbose=False)
    x = torch.randn(64, 4)
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
    callback = diagnostics.LightningCallback(every=1)
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=callback, {options})
    trainer.fit(Net(), loader)
    report = callback.report()
    if trainer.is_global_zero:
        print(report.title)
        print([stage.detail for stage in report.stages if stage.name == "forward passes"], report.faults)
    print("weights", [round(p.sum().item(), 6) for p in trainer.lightning_module.parameters()])
"""


def run(tmp_path, **fields):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(**{"package": "lightning.pytorch", "rate": 0.1, "options": "", **fields}))
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=CHILD_SECONDS,
    )


@pytest.mark.exhaustive  # it needs a port, and on a busy machine two minutes
def test_ranks_of_pytorch_lightning_watch_their_own_and_the_first_one_tells(tmp_path):
    done = run(tmp_path, package="pytorch_lightning", rate=0.0, options='strategy="ddp", devices=2')
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("weights")]
    assert lines[0] == "watched 8 steps of Net with a Lightning Trainer"
    assert re.match(r"\['8\b", lines[1]), lines
    assert lines[1].endswith("()"), lines
    assert done.stderr.count("watched 8 steps") == 1, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"every": 0}, r"LightningCallback\(\) was given every=0. It takes a number of steps, 1 or more."),
        ({"trace_steps": "all"}, r"LightningCallback\(\) was given trace_steps='all'"),
        ({"fixed_batch": 3}, r"LightningCallback\(\) was given an int as fixed_batch"),
        ({"logger": 3}, r"LightningCallback\(\) was given"),
    ],
)
def test_a_wrong_argument_is_told(arguments, message):
    with pytest.raises(diagnostics.InvalidInput, match=message):
        diagnostics.LightningCallback(**arguments)


def test_a_trainer_given_to_watch_is_sent_here():
    trainer = classifier().make_trainer()
    with pytest.raises(
        diagnostics.InvalidInput, match=r"Trainer\(callbacks=\[diagnostics.LightningCallback\(\)\]\)"
    ):
        diagnostics.watch(trainer)
