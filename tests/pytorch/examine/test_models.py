"""`examine`: models and losses that cannot be used, and what a Trainer brings along."""

import os
import tempfile
import threading

import pytest
import torch
from datasets import Dataset as HubDataset
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import Trainer, TrainingArguments

import diagnostics

GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.randn(40, 6, generator=GENERATOR)
LABELS = INPUTS[:, :3].argmax(1)
LOADER = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8)
LOSS = nn.CrossEntropyLoss()


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def stage(report, name):
    (found,) = [stage for stage in report.stages if stage.name == name]
    return found.status, found.detail


class Returning(nn.Module):
    """A model that makes something of its logits before it returns them."""

    def __init__(self, make):
        super().__init__()
        self.head = nn.Linear(6, 3)
        self.make = make

    def forward(self, inputs):
        return self.make(self.head(inputs))


class TestModelsThatCannotBeUsed:
    @pytest.mark.parametrize(
        ("make", "returned"),
        [
            (lambda logits: {"hidden": logits}, "a dict with hidden"),
            (lambda logits: "logits", "a str"),
            (lambda logits: (logits, logits), "a tuple of 2"),
            (lambda logits: (), "a tuple of 0"),
            (lambda logits: logits, "a tensor of shape (8, 3)"),
        ],
        ids=["dict", "string", "tuple", "empty tuple", "logits"],
    )
    def test_no_loss_where_the_model_should_return_one(self, make, returned):
        report = diagnostics.examine(Returning(make), LOADER)
        assert stage(report, "forward and loss") == (
            "failed",
            f"The model returned {returned}, and no loss_fn was given: there is no loss to train on. Pass "
            "examine(model, loader, loss_fn), or let the model return its loss.",
        )

    @pytest.mark.parametrize("loss_fn", [None, LOSS])
    def test_a_model_that_returns_nothing(self, loss_fn):
        report = diagnostics.examine(Returning(lambda logits: None), LOADER, loss_fn)
        said = "The model returned None: its forward ends without a return."
        assert stage(report, "forward and loss") == ("failed", said)

    @pytest.mark.parametrize(
        ("make", "returned", "kind"),
        [
            (lambda logits: {"hidden": logits}, "a dict with hidden", "dict"),
            (lambda logits: "logits", "a str", "str"),
            (lambda logits: (logits, logits), "a tuple of 2", "tuple"),
        ],
        ids=["dict", "string", "tuple"],
    )
    def test_what_the_loss_cannot_take(self, make, returned, kind):
        report = diagnostics.examine(Returning(make), LOADER, LOSS)
        assert stage(report, "forward and loss") == (
            "failed",
            f"The model returned {returned}, and CrossEntropyLoss cannot take that (TypeError: "
            f"cross_entropy_loss(): argument 'input' (position 1) must be Tensor, not {kind}). Pass a loss_fn of "
            "(what the model returns, target), or let the model return a tensor.",
        )

    @pytest.mark.parametrize(
        ("loss_fn", "said"),
        [
            (
                nn.CrossEntropyLoss(reduction="none"),
                "The loss is a tensor of shape (8,); training needs one number. Take its mean, or leave out "
                'reduction="none".',
            ),
            (
                lambda prediction, target: LOSS(prediction, target).item(),
                "The loss is a float; training needs a tensor holding one number. Leave out .item(), float() or "
                ".numpy().",
            ),
            (
                lambda prediction, target: LOSS(prediction, target).detach().numpy(),
                "The loss is a ndarray; training needs a tensor holding one number. Leave out .item(), float() or "
                ".numpy().",
            ),
            (lambda prediction, target: None, "The loss is None; training needs a tensor holding one number."),
        ],
        ids=["vector", "float", "array", "None"],
    )
    def test_a_loss_that_is_not_one_number_in_a_tensor(self, loss_fn, said):
        assert stage(diagnostics.examine(classifier(), LOADER, loss_fn), "forward and loss") == ("failed", said)

    def test_a_model_that_cannot_be_copied_is_not_run(self):
        ran = []
        model = Returning(lambda logits: ran.append(1) or logits)
        model.lock = threading.Lock()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        report = diagnostics.examine(model, LOADER, LOSS, optimizer)
        assert stage(report, "forward and loss") == (
            "not judged",
            "the model cannot be copied (TypeError: cannot pickle '_thread.lock' object), and what belongs to you "
            "is not run: forward, backward and overfit are left out",
        )
        assert stage(report, "backward") == ("not judged", "the model was not run")
        assert stage(report, "optimizer step") == ("passed", "SGD with learning rate 0.1")
        assert ran == []

    def test_a_model_without_parameters(self):
        report = diagnostics.examine(nn.Flatten(), LOADER, LOSS)
        assert stage(report, "forward and loss") == (
            "failed",
            "Flatten has no parameters: there is nothing that training could change.",
        )

    def test_weights_on_the_meta_device(self):
        class Spread(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3, device="meta")

            def forward(self, inputs):
                return self.second(self.first(inputs))

        report = diagnostics.examine(Spread(), LOADER, LOSS)
        assert stage(report, "forward and loss") == (
            "failed",
            "2 of the model's 4 parameters are on the device meta: they have a shape and no values. Load or "
            "initialise the weights first.",
        )
        assert report.faults == ()

    def test_modules_that_are_initialised_by_the_first_batch(self):
        model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyBatchNorm1d(), nn.Linear(8, 3))
        report = diagnostics.examine(model, LOADER, LOSS)
        assert stage(report, "forward and loss") == (
            "failed",
            "4 of the model's 6 parameters get their shape from the first batch (lazy modules) and have seen "
            "none. Run one batch through the model first; make the optimizer after that.",
        )
        model(INPUTS)
        assert diagnostics.examine(model, LOADER, LOSS).ok


class Rows(Dataset):
    def __init__(self, size=40, get=lambda index: (INPUTS[index % 40], LABELS[index % 40])):
        self.size, self.get = size, get

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.get(index)


def trainer_of(train_dataset, model=None, collator=None, **options):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = classifier()

        def forward(self, inputs, labels):
            logits = self.layers(inputs)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="examination-"),
        per_device_train_batch_size=8,
        report_to="none",
        max_steps=2,
        disable_tqdm=True,
        **options,
    )
    return Trainer(model or Model(), arguments, train_dataset=train_dataset, data_collator=collator)


ROWS = [{"inputs": inputs, "labels": label} for inputs, label in zip(INPUTS, LABELS, strict=True)]


class TestTrainer:
    def test_passes_every_stage(self):
        report = diagnostics.examine(trainer_of(ROWS))
        assert report.ok, str(report)
        assert stage(report, "dataset")[1] == "40 rows, 40 read, with inputs, labels; a model of 163 parameters"
        assert stage(report, "batch")[1] == "8 examples: inputs (8, 6), labels (8,)"
        assert stage(report, "optimizer step") == (
            "not judged",
            "the Trainer makes its optimizer in train(), over all trainable parameters",
        )
        assert stage(report, "evaluation metric") == ("not judged", "the Trainer has no compute_metrics")

    def test_without_a_train_dataset(self):
        report = diagnostics.examine(trainer_of(None))
        said = "The Trainer has no train_dataset: pass Trainer(..., train_dataset=...)."
        assert stage(report, "dataset") == ("failed", said)

    def test_with_an_empty_train_dataset(self):
        report = diagnostics.examine(trainer_of(Rows(0)))
        said = "The training dataset is empty: it has 0 rows. There is nothing to train on."
        assert stage(report, "dataset") == ("failed", said)

    def test_with_a_collator_that_returns_a_list(self):
        report = diagnostics.examine(trainer_of(ROWS, collator=list))
        assert stage(report, "batch") == (
            "failed",
            "The collator returned a list; a Trainer needs a dict of tensors, because it calls model(**batch).",
        )

    def test_with_an_iterable_dataset_of_the_hub(self):
        rows = HubDataset.from_dict({"inputs": INPUTS.tolist(), "labels": LABELS.tolist()}).to_iterable_dataset()
        state = rows.state_dict()
        report = diagnostics.examine(trainer_of(rows))
        assert report.ok, str(report)
        assert stage(report, "dataset")[1] == (
            "unknown number of rows, the first 40 read, with inputs, labels; a model of 163 parameters"
        )
        assert rows.state_dict() == state
        assert [row["labels"] for row in rows] == LABELS.tolist()

    def test_with_ten_million_rows_and_an_evaluation_set_reads_a_small_part(self, tmp_path):
        counted = os.open(tmp_path / "read", os.O_CREAT | os.O_WRONLY)  # a counter in Python would be put back

        def get(index):
            os.write(counted, b".")
            return {"inputs": INPUTS[index % 40] + index, "labels": LABELS[index % 40]}

        trainer = trainer_of(Rows(10_000_000, get))
        trainer.eval_dataset = ROWS
        report = diagnostics.examine(trainer)
        assert "10,000,000 rows, 512 read" in stage(report, "dataset")[1]
        batch, again = 8, 3  # the batch is read again, to see whether reading changes it
        read = os.fstat(counted).st_size
        os.close(counted)
        assert 512 < read <= 512 + 20_000 + (1 + again) * batch
