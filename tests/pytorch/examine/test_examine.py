"""`examine`: the walk, where it stops, and arguments that it refuses."""

import gc
import subprocess
import sys
import weakref

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import Trainer, TrainingArguments

import diagnostics
from diagnostics import InvalidInput
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.report import build
from diagnostics.rules import registry

GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.randn(40, 6, generator=GENERATOR)
LABELS = INPUTS[:, :3].argmax(1)
LOADER = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8)
LOSS = nn.CrossEntropyLoss()
STAGES = [
    "dataset",
    "batch",
    "forward and loss",
    "backward",
    "optimizer step",
    "one-batch overfit",
    "evaluation metric",
]


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def stage(report, name):
    (found,) = [stage for stage in report.stages if stage.name == name]
    return found.status, found.detail


class TestWalk:
    def test_passes_every_stage_in_order_and_says_what_it_saw(self):
        model = classifier()
        report = diagnostics.examine(model, LOADER, LOSS, torch.optim.Adam(model.parameters(), lr=1e-2))
        assert [s.name for s in report.stages] == STAGES
        assert [s.status for s in report.stages] == ["passed"] * 6 + ["not judged"]
        assert report.ok
        assert report.title == "examined Sequential with a DataLoader"
        assert stage(report, "dataset")[1] == "40 rows, 40 read; a model of 163 parameters"
        assert stage(report, "batch")[1] == "8 examples: input (8, 6), target (8,)"
        assert stage(report, "backward")[1] == "4 of 4 trainable parameters get a gradient"
        assert stage(report, "optimizer step")[1] == "Adam with learning rate 0.01"
        assert stage(report, "evaluation metric")[1] == "no metric was given"

    def test_stops_at_the_first_error_before_the_loss_would_fail(self):
        called = []

        class Loss(nn.CrossEntropyLoss):
            def forward(self, prediction, target):
                called.append("the loss")
                return super().forward(prediction, target)

        loader = DataLoader(TensorDataset(INPUTS, LABELS + 1), batch_size=40)
        report = diagnostics.examine(classifier(), loader, Loss())
        (finding,) = report.findings
        assert finding.rule == "labels-out-of-range"
        outside = int((LABELS == 2).sum())
        assert finding.message == (
            "The labels range from 1 to 3, but the model's 3 outputs cover labels 0 to 2. "
            f"{outside} of the 40 labels in this batch are out of range (label 3)."
        )
        assert [s.status for s in report.stages] == ["passed", "passed", "stopped"] + ["not reached"] * 4
        assert called == []
        assert not report.ok

    def test_a_warning_does_not_stop_it(self):
        model = classifier()
        optimizer = torch.optim.Adam(model[2].parameters())
        report = diagnostics.examine(model, LOADER, LOSS, optimizer)
        assert [finding.rule for finding in report.findings] == ["optimizer-misses-parameters"]
        assert stage(report, "one-batch overfit")[0] == "passed"

    def test_explains_what_the_users_own_code_raises_and_names_the_line(self):
        class WrongWidth(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(5, 3)

            def forward(self, inputs):
                return self.head(inputs)

        report = diagnostics.examine(WrongWidth(), LOADER, LOSS)
        assert stage(report, "forward and loss") == (
            "stopped",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x6 and 5x3)",
        )
        (finding,) = report.findings
        assert finding.message == (
            "WrongWidth.head (Linear) has in_features=5, but its input has shape (8, 6), with size 6 along axis 1."
        )
        assert finding.where.function == "forward"

    def test_of_what_no_rule_knows_it_tells_the_words_and_the_line(self):
        class OwnCheck(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(6, 3)

            def forward(self, inputs):
                raise LookupError("no table for this season")

        report = diagnostics.examine(OwnCheck(), LOADER, LOSS)
        assert stage(report, "forward and loss") == ("failed", "LookupError: no table for this season")
        assert report.crash.where.function == "forward"
        assert report.crash.where.file.endswith("test_examine.py")
        assert not report.ok

    def test_what_failed_is_let_go_with_the_tensors_in_its_frames(self):
        seen = []

        class TooLarge(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 2)

            def forward(self, inputs):
                activations = self.layer(inputs)
                seen.append(weakref.ref(activations))
                error = MemoryError("no room for the next layer")  # the frame and the exception hold each other
                raise error

        gc.disable()
        try:
            report = diagnostics.examine(
                TooLarge(), [(torch.randn(8, 4), torch.zeros(8).long())], nn.CrossEntropyLoss()
            )
            assert seen[-1]() is None
        finally:
            gc.enable()
        assert [finding.rule for finding in report.findings] == ["out-of-memory"]

    def test_a_failure_that_a_rule_knows_is_a_finding_and_no_riddle(self):
        class TooFewWords(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.Embedding(10, 3)

            def forward(self, ids):
                return self.words(ids).mean(1)

        ids = torch.arange(8 * 4).flip(0).reshape(8, 4)
        report = diagnostics.examine(TooFewWords(), [(ids, torch.zeros(8, dtype=torch.long))], LOSS)
        assert [finding.rule for finding in report.findings] == ["token-ids-out-of-range"]
        assert report.findings[0].evidence["highest_id"] == 31
        assert report.crash is None

    def test_a_fault_of_a_rule_is_a_line_in_the_report(self, monkeypatch):
        class Faulty(Rule):
            """A rule that fails."""

            severity = "error"
            stage = "batch"

            @check
            def from_batch(self, batch: BatchFacts) -> None:
                raise ZeroDivisionError("a fault of ours")

        rules = (*registry.all_rules(), Faulty())
        monkeypatch.setattr(build, "all_rules", lambda: rules)
        report = diagnostics.examine(classifier(), LOADER, LOSS)
        assert report.faults == ("the rule faulty failed: ZeroDivisionError: a fault of ours",)
        assert report.not_applicable["faulty"] == "the rule itself failed"
        assert report.ok
        closing = " ".join(str(report).split())
        assert closing.endswith(
            "Error in diagnostics itself, not in your program: the rule faulty failed: ZeroDivisionError: a "
            "fault of ours"
        )

    def test_a_fault_of_a_probe_is_a_line_in_the_report(self, monkeypatch):
        from diagnostics.collectors.pytorch.examine.pipeline import PyTorchPipeline

        def fail(self):
            raise ZeroDivisionError("a fault of ours")
            yield

        monkeypatch.setattr(PyTorchPipeline, "backward", fail)
        report = diagnostics.examine(classifier(), LOADER, LOSS)
        assert report.faults == ("the stage 'backward' failed: ZeroDivisionError: a fault of ours",)
        assert stage(report, "backward") == ("not judged", "an error in diagnostics itself; see below")
        assert stage(report, "one-batch overfit")[0] == "passed"

    def test_lets_an_interrupt_through(self):
        def interrupted(prediction, target):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            diagnostics.examine(classifier(), LOADER, interrupted)

    def test_prints_nothing(self, capfd):
        diagnostics.examine(classifier(), LOADER, LOSS)
        assert capfd.readouterr() == ("", "")

    def test_does_not_import_what_the_program_did_not(self):
        code = (
            "import sys, torch, diagnostics; from torch import nn\n"
            "x = torch.randn(8, 4); y = x[:, :2].argmax(1)\n"
            "report = diagnostics.examine(nn.Linear(4, 2), [(x, y)], nn.CrossEntropyLoss())\n"
            "assert report.faults == (), report\n"
            "print([name for name in ('transformers', 'datasets', 'tensorflow', 'keras') if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("[]\n", "")


class TestArguments:
    @pytest.mark.parametrize(
        ("target", "named"),
        [
            (None, "None"),
            ("model.pt", "a str"),
            (nn.Linear, "the class Linear, not an instance of it"),
            (3, "an int"),
        ],
    )
    def test_neither_a_trainer_nor_a_model(self, target, named):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.examine(target)
        assert str(raised.value) == (
            f"examine() was given {named}. It takes a Hugging Face Trainer, or a PyTorch model or a compiled "
            "Keras model with its data: examine(trainer), examine(model, loader, loss_fn, optimizer) or "
            "examine(model, dataset)."
        )

    def test_a_model_without_data(self):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.examine(classifier())
        assert str(raised.value) == (
            "examine() was given the model Sequential and no data. Pass the loader of the training loop: "
            "examine(model, loader, loss_fn, optimizer)."
        )

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (3, "an int as data, which cannot be iterated. Pass a DataLoader, or a list of batches."),
            (
                "train.csv",
                "a str as data, which is not a series of batches. Pass a DataLoader; one batch can be passed as "
                "[batch].",
            ),
            (
                {"inputs": INPUTS},
                "a dict as data, which is not a series of batches. Pass a DataLoader; one batch can be passed as "
                "[batch].",
            ),
            (
                INPUTS,
                "a Tensor as data, which is not a series of batches. Pass a DataLoader; one batch can be passed "
                "as [batch].",
            ),
            (
                (INPUTS, LABELS),
                "a tuple as data, and all in it are tensors: that looks like a single batch. Pass it as [batch], "
                "or a DataLoader.",
            ),
            (
                TensorDataset(INPUTS, LABELS),
                "a TensorDataset as data, which holds single rows. Pass the loader that makes batches of them: "
                "DataLoader(dataset, ...).",
            ),
        ],
        ids=["int", "str", "dict", "tensor", "tuple", "dataset"],
    )
    def test_data_that_holds_no_batches(self, data, said):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.examine(classifier(), data, LOSS)
        assert str(raised.value) == f"examine() was given {said}"

    def test_a_loss_that_cannot_be_called(self):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.examine(classifier(), LOADER, "cross_entropy")
        assert str(raised.value) == (
            "examine() was given a str as loss_fn, which cannot be called. Pass a function of (prediction, "
            "target), such as torch.nn.CrossEntropyLoss()."
        )

    def test_the_class_of_a_loss(self):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.examine(classifier(), LOADER, nn.CrossEntropyLoss)
        assert str(raised.value) == (
            "examine() was given the class CrossEntropyLoss, not an instance of it, as loss_fn. Create one first: "
            "CrossEntropyLoss()."
        )

    def test_an_optimizer_that_is_none(self):
        with pytest.raises(InvalidInput) as raised:
            diagnostics.examine(classifier(), LOADER, LOSS, "adam")
        assert str(raised.value) == (
            "examine() was given a str as optimizer, which has no param_groups. Pass a torch.optim.Optimizer."
        )

    def test_a_trainer_and_more(self, tmp_path):
        trainer = Trainer(classifier(), TrainingArguments(output_dir=str(tmp_path), report_to="none"))
        with pytest.raises(InvalidInput) as raised:
            diagnostics.examine(trainer, LOADER)
        assert str(raised.value) == (
            "examine() was given a Trainer and further arguments. A Trainer has its own data, loss and optimizer: "
            "examine(trainer)."
        )
