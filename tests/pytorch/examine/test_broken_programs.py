"""Real programs with one mistake each: `examine` names it, and names it first."""

import tempfile

import numpy as np
import pytest
import torch
from datasets import Dataset as HubDataset
from sklearn.metrics import accuracy_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

import diagnostics
from tests.support.findings import all_findings
from tests.support.marks import quick

pytestmark = pytest.mark.filterwarnings("ignore")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(60))]
LOSS = nn.CrossEntropyLoss()


def points(rows=256, classes=4):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, 16, generator=generator)
    return inputs, inputs[:, :classes].argmax(1)


def loader(inputs, labels, size=32):
    return DataLoader(TensorDataset(inputs, labels), batch_size=size, shuffle=True)


def classifier(outputs=4):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, outputs))


# --- plain PyTorch -----------------------------------------------------------------------------------------


def a_label_too_many():
    inputs, labels = points(classes=5)
    return classifier(4), loader(inputs, labels), LOSS


def one_class_only():
    inputs, labels = points()
    return classifier(), loader(inputs, labels * 0), LOSS


def nineteen_to_one():
    inputs, _ = points(512)
    return classifier(2), loader(inputs, (inputs[:, 0] > 1.65).long()), LOSS


def a_thousand_outputs_for_four_classes():
    return classifier(1000), loader(*points()), LOSS


def raw_pixels():
    torch.manual_seed(0)
    pixels = torch.randint(0, 256, (256, 16)).float()
    return classifier(), loader(pixels, points()[1]), LOSS


def a_last_layer_that_starts_too_large():
    model = classifier()
    model[2].weight.data *= 30
    return model, loader(*points()), LOSS


def missing_values():
    inputs, labels = points()
    inputs[::8, 3] = torch.nan
    return classifier(), loader(inputs, labels), LOSS


def a_logarithm_of_zero():
    def loss_fn(prediction, target):
        return LOSS(prediction, target) + (prediction.relu() * 0).log().mean().abs()

    return classifier(), loader(*points()), loss_fn


def an_argmax_before_the_loss():
    def loss_fn(prediction, target):
        return nn.functional.mse_loss(prediction.argmax(1).float(), target.float())

    return classifier(), loader(*points()), loss_fn


def all_is_frozen():
    return classifier().requires_grad_(False), loader(*points()), LOSS


class Encoded(nn.Module):
    """An encoder and a head; what happens in between is the mistake."""

    def __init__(self, between):
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.head, self.between = nn.Linear(16, 32), nn.Linear(32, 4), between

    def forward(self, inputs):
        return self.head(self.between(self.encoder(inputs).relu()))


def a_detach_in_the_middle():
    return Encoded(torch.Tensor.detach), loader(*points()), LOSS


def a_mask_that_is_all_zero():
    return Encoded(lambda states: states * 0), loader(*points()), LOSS


def rounded_activations():
    return Encoded(lambda states: (states > 1e3).float() + 1e-5 * states), loader(*points()), LOSS


def xor_without_a_hidden_activation():
    inputs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    rows = DataLoader(TensorDataset(inputs, torch.tensor([[0.0], [1.0], [1.0], [0.0]])), batch_size=4)
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1), nn.Sigmoid()), rows, nn.MSELoss()


def a_head_that_came_after_the_optimizer():
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters())
    model[2] = nn.Linear(32, 4)
    return model, loader(*points()), LOSS, optimizer


def an_optimizer_for_another_model():
    return classifier(), loader(*points()), LOSS, torch.optim.Adam(classifier().parameters())


def a_model_in_evaluation_mode():
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 4)).eval()
    return model, loader(*points()), LOSS


PLAIN = {
    a_label_too_many: ("labels-out-of-range", "error"),
    one_class_only: ("single-class-labels", "error"),
    nineteen_to_one: ("class-imbalance", "warning"),
    a_thousand_outputs_for_four_classes: ("unused-classes", "warning"),
    raw_pixels: ("unscaled-inputs", "warning"),
    a_last_layer_that_starts_too_large: ("initial-loss-off", "warning"),
    missing_values: ("non-finite-inputs", "error"),
    a_logarithm_of_zero: ("non-finite-loss", "error"),
    an_argmax_before_the_loss: ("no-gradient", "error"),
    all_is_frozen: ("no-gradient", "error"),
    a_detach_in_the_middle: ("unreached-parameters", "warning"),
    a_mask_that_is_all_zero: ("ignores-input", "error"),
    rounded_activations: ("cannot-overfit-one-batch", "warning"),
    xor_without_a_hidden_activation: ("cannot-overfit-one-batch", "warning"),
    a_head_that_came_after_the_optimizer: ("optimizer-misses-parameters", "warning"),
    an_optimizer_for_another_model: ("optimizer-misses-parameters", "error"),
    a_model_in_evaluation_mode: ("eval-mode-training", "note"),
}


@pytest.mark.parametrize("build", PLAIN, ids=lambda build: build.__name__)
def test_in_plain_pytorch(build):
    report = diagnostics.examine(*build())
    assert report.faults == ()
    rule, severity = PLAIN[build]
    assert (report.findings[0].rule, report.findings[0].severity) == (rule, severity), str(report)


def test_scale_is_not_blamed_where_batch_norm_removes_it():
    inputs, labels = points()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
    nn.init.normal_(model[3].weight, std=1.5)
    found = {f.rule: f for f in all_findings(diagnostics.examine(model, loader(100 * inputs, labels), LOSS))}
    assert "unscaled-inputs" not in found
    assert "scale" not in str(found["initial-loss-off"].fix)


# --- the Trainer -------------------------------------------------------------------------------------------


def tokenizer():
    return BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)})


def texts(rows=128, longest=12):
    choose = np.random.default_rng(0)
    sentences = [" ".join(choose.choice(WORDS[5:], choose.integers(4, longest))) for _ in range(rows)]
    return HubDataset.from_dict({"text": sentences, "label": (np.arange(rows) % 2).tolist()})


def tokenized(**options):
    tokens = tokenizer()
    return texts().map(lambda row: tokens(row["text"], **options))


def trainer(rows, *, vocabulary=65, **options):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="broken-"), report_to="none", per_device_train_batch_size=16
    )
    options = {"processing_class": tokenizer(), **options}
    return Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows, **options)


def accuracy_of_logits(prediction):
    return {"accuracy": accuracy_score(prediction.label_ids, prediction.predictions)}


def weighted_loss(outputs, labels, num_items_in_batch=None):
    return nn.functional.cross_entropy(outputs.logits, labels, weight=torch.tensor([1.0, 3.0]))


def without_the_mask(features):
    batch = DataCollatorWithPadding(tokenizer())(features)
    return {name: value for name, value in batch.items() if name != "attention_mask"}


WITH_A_TRAINER = {
    "the raw dataset": (lambda: trainer(texts()), "untokenized-dataset", "error"),
    "the raw dataset, nothing that pads": (
        lambda: trainer(texts(), processing_class=None),
        "untokenized-dataset",
        "error",
    ),
    "nothing that pads": (lambda: trainer(tokenized(), processing_class=None), "ragged-batch", "error"),
    "labels under another name": (
        lambda: trainer(tokenized().rename_column("label", "target")),
        "labels-missing",
        "error",
    ),
    "the tokenizer of another model": (
        lambda: trainer(tokenized(), vocabulary=30),
        "token-ids-out-of-range",
        "error",
    ),
    "labels from 1": (
        lambda: trainer(tokenized().map(lambda row: {"label": row["label"] + 1})),
        "labels-out-of-range",
        "error",
    ),
    "a metric of logits": (
        lambda: trainer(tokenized(), compute_metrics=accuracy_of_logits),
        "metric-on-logits",
        "error",
    ),
    "a metric of logits beside a loss of the user's own": (
        lambda: trainer(tokenized(), compute_metrics=accuracy_of_logits, compute_loss_func=weighted_loss),
        "metric-on-logits",
        "error",
    ),
    "no mask": (
        lambda: trainer(tokenized(), data_collator=without_the_mask),
        "attention-mask-missing",
        "warning",
    ),
    "padded to the full length": (
        lambda: trainer(tokenized(padding="max_length", max_length=64)),
        "mostly-padding",
        "note",
    ),
    "cut off": (lambda: trainer(tokenized(truncation=True, max_length=9)), "truncated-inputs", "note"),
}


SOME = "the raw dataset", "nothing that pads", "labels under another name", "a metric of logits"


@pytest.mark.parametrize("case", quick(WITH_A_TRAINER, *SOME))
def test_with_a_trainer(case):
    build, rule, severity = WITH_A_TRAINER[case]
    report = diagnostics.examine(build())
    assert report.faults == ()
    assert (report.findings[0].rule, report.findings[0].severity) == (rule, severity), str(report)


def test_a_metric_says_of_the_logits_that_it_is_asked_about_what_it_will_say_of_the_models_own():
    (finding,) = diagnostics.examine(trainer(tokenized(), compute_metrics=accuracy_of_logits)).findings
    assert finding.evidence["error"] == (
        "ValueError: Classification metrics can't handle a mix of binary and continuous-multioutput targets"
    )
