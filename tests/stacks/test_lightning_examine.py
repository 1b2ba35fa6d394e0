"""`diagnostics.examine` and `overfit` of a LightningModule."""

import io
import re
import warnings

import lightning as L
import numpy as np
import pytest
import torch
from lightning.pytorch.utilities import CombinedLoader
from torch import nn
from torch.nn import functional as F

import diagnostics
from tests.stacks.lightning_programs import (
    BROKEN,
    HEALTHY,
    Autoencoder,
    Classifier,
    LossLoggedOnly,
    NoOptimizer,
    Regression,
    RegressionData,
    autoencoder,
    classifier,
    manual,
    regression,
)
from tests.stacks.test_stacks import named, told

pytestmark = pytest.mark.filterwarnings("error")  # nothing is said beside the report


def examined(program, **options):
    return diagnostics.examine(program.module, program.data, **options)


def state_of(module):
    stream = io.BytesIO()
    torch.save(module.state_dict(), stream)
    draws = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    return stream.getvalue(), draws, sorted(vars(module)), module._trainer


@pytest.mark.parametrize("name", [name for name in HEALTHY if name != "manual"])
def test_a_healthy_module_passes_every_stage_and_stays_as_it_is(name, capsys):
    program = HEALTHY[name]()
    before = state_of(program.module)
    report = examined(program)
    assert state_of(program.module) == before
    assert report.ok, told(report.as_dict())
    judged = {stage.name: stage.status for stage in report.stages}
    for stage in ("dataset", "batch", "forward and loss", "backward", "optimizer step", "one-batch overfit"):
        assert judged[stage] == "passed", report
    assert report.faults == ()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", [name for name, (_, _, rules) in BROKEN.items() if rules])
def test_a_broken_module_is_named(name):
    make, _, rules = BROKEN[name]
    report = examined(make()).as_dict()
    assert rules <= set(named(report["findings"])), told(report)
    assert report["faults"] == []


def stage(report, name):
    (found,) = [one for one in report.stages if one.name == name]
    return found


class TestWhatCannotBeJudged:
    def test_manual_optimization_is_told_in_words(self):
        report = examined(manual())
        assert report.ok, report
        assert stage(report, "forward and loss").status == "not judged"
        assert "optimizes by itself (automatic_optimization is False)" in stage(report, "forward and loss").detail
        assert stage(report, "batch").status == "passed"
        assert stage(report, "optimizer step").status == "passed"
        assert stage(report, "one-batch overfit").status == "not judged"

    def test_a_loss_that_is_not_returned_is_told_in_words(self):
        report = examined(BROKEN["loss_not_returned"][0]())
        assert stage(report, "forward and loss").status == "failed"
        assert "training_step returned None for the first batch" in stage(report, "forward and loss").detail

    def test_a_dict_without_a_loss_is_told_with_its_keys(self):
        report = examined(regression(LossLoggedOnly))
        assert 'returned a dict without "loss" (its keys: train_loss)' in stage(report, "forward and loss").detail

    def test_a_number_in_place_of_the_loss_is_told(self):
        class Number(Autoencoder):
            def training_step(self, batch, batch_idx):
                return super().training_step(batch, batch_idx).item()

        report = examined(autoencoder(Number))
        assert "training_step returned" in stage(report, "forward and loss").detail

    def test_no_optimizer_is_told_in_words(self):
        report = examined(autoencoder(NoOptimizer))
        assert not report.ok
        assert "configure_optimizers returned None" in stage(report, "optimizer step").detail

    def test_a_result_that_lightning_refuses_is_explained(self):
        class Wrong(Autoencoder):
            def configure_optimizers(self):
                return "adam"

        report = examined(autoencoder(Wrong))
        assert not report.ok
        assert "Unknown configuration for model optimizers" in stage(report, "optimizer step").detail


def first(parameters):
    return torch.optim.Adam(parameters, lr=1e-3)


def second(parameters):
    optimizer = first(parameters)
    return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 5)]


def third(parameters):
    optimizer = first(parameters)
    return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 5)}


def fourth(parameters):
    return [first(parameters)]


@pytest.mark.parametrize("form", [first, second, third, fourth])
def test_the_optimizer_is_read_in_each_form_that_lightning_takes(form):
    class Module(Autoencoder):
        def configure_optimizers(self):
            return form(list(self.encoder.parameters()))

    report = examined(autoencoder(Module))
    (finding,) = [one for one in report.findings if one.rule == "optimizer-misses-parameters"]
    assert "decoder" in finding.message


class TestWhatCodeOfAModuleAsksFor:
    def test_trainer_logger_and_schedule_are_there_and_nothing_is_logged(self):
        class Asks(Classifier):
            def training_step(self, batch, batch_idx):
                assert self.trainer.max_epochs
                assert self.current_epoch == 0
                assert self.lr_schedulers() is not None
                self.logger.experiment.add_scalar("x", 1, self.global_step)
                self.print("a line")
                self.log_dict({"a": 1.0})
                return super().training_step(batch, batch_idx)

        assert examined(classifier(Asks)).ok

    def test_a_batch_is_what_the_transfer_hooks_leave(self):
        class Moved(Classifier):
            def on_after_batch_transfer(self, batch, dataloader_idx):
                x, y = batch
                return x, y - 1

        assert examined(classifier(Moved, first_label=1)).ok

    def test_the_data_module_is_there(self):
        class Asks(Regression):
            def training_step(self, batch):
                assert self.trainer.datamodule.train_set is not None
                return super().training_step(batch)

        assert examined(regression(Asks)).ok


class TestData:
    def test_a_data_module_is_set_up_on_a_copy(self):
        program = regression()
        assert examined(program).title == "examined Regression with a RegressionData"
        assert not hasattr(program.data, "train_set")

    def test_the_modules_own_loader_is_taken(self):
        loader = autoencoder().data

        class Own(Autoencoder):
            def train_dataloader(self):
                return loader

        assert diagnostics.examine(Own()).ok

    def test_a_data_module_made_from_datasets_is_taken(self):
        program = autoencoder()
        data = L.LightningDataModule.from_datasets(program.data.dataset, batch_size=32)
        assert diagnostics.examine(program.module, data).ok

    def test_overfit_takes_a_module_as_well(self):
        program = classifier()
        result = diagnostics.overfit(program.module, program.data, seconds=20)
        assert result.stops_at is None, result


class RaisesInSetup(RegressionData):
    def setup(self, stage):
        raise FileNotFoundError("no data/train.csv")


class Uncopied(RegressionData):
    def __deepcopy__(self, memo):
        raise TypeError("a lock")


class WithoutLoader(L.LightningDataModule):
    pass


class WithoutStep(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 2)


def several_loaders():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Lightning, with this PyTorch
        return CombinedLoader([autoencoder().data])


class RaisesInConfigureModel(Autoencoder):
    def configure_model(self):
        raise RuntimeError("no checkpoint")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: (Autoencoder(),), "given the LightningModule Autoencoder and no data. Pass what fit gets"),
        (
            lambda: (Autoencoder(), RaisesInSetup()),
            r'RaisesInSetup.setup\("fit"\) on a copy, .* FileNotFoundError',
        ),
        (lambda: (Autoencoder(), Uncopied()), "Uncopied, which cannot be copied .TypeError: a lock"),
        (lambda: (Autoencoder(), WithoutLoader()), "WithoutLoader, which has no train_dataloader"),
        (lambda: (Autoencoder(), several_loaders()), "a CombinedLoader of several loaders"),
        (lambda: (Autoencoder(), {"a": autoencoder().data}), "a dict of several loaders"),
        (lambda: (Autoencoder(), 3), "an int as data, which cannot be iterated"),
        (lambda: (WithoutStep(), autoencoder().data), "WithoutStep, which has no training_step"),
        (lambda: (RaisesInConfigureModel(), autoencoder().data), "set up a copy .* RuntimeError: no checkpoint"),
        (lambda: (classifier().make_trainer(),), r"given a Lightning Trainer. Pass what its fit gets"),
        (lambda: (RegressionData(),), r"given a RegressionData"),
    ],
)
def test_bad_input_is_told_in_plain_words(arguments, message):
    given = arguments()
    with pytest.raises(diagnostics.InvalidInput, match=message):
        diagnostics.examine(*given)


def test_with_a_loss_of_its_own_the_module_is_a_plain_model():
    program = classifier()
    report = diagnostics.examine(program.module, program.data, F.cross_entropy)
    assert re.match("examined Classifier with a DataLoader", report.title)
    assert report.ok, report
