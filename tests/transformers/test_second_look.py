"""The second look at the model of a Trainer."""

import tempfile

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)

from diagnostics.run.observer import ScriptObserver

TOKENS = np.random.default_rng(0).integers(1, 30, size=(32, 12))


class Towers(nn.Module):
    """Uses one of its inputs twice, and the other never."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.head = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(16, 2)

    def forward(self, question, answer, labels=None):
        hidden = torch.cat([self.left(question), self.right(question)], 1)
        logits = self.head(hidden)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits} if loss is not None else {"logits": logits}


class UnshiftedTrainer(Trainer):
    """Weighs tokens, and compares each answer with the token that was read."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        answers, wanted = self.paired(outputs.logits, labels)
        loss = nn.CrossEntropyLoss(weight=torch.ones(30))(answers.reshape(-1, 30), wanted.reshape(-1))
        return (loss, outputs) if return_outputs else loss

    def paired(self, answers, labels):
        return answers, labels


class ShiftedTrainer(UnshiftedTrainer):
    """The same, compared with the next token."""

    def paired(self, answers, labels):
        return answers[:, :-1], labels[:, 1:]


def gpt2():
    torch.manual_seed(0)
    sizes = {"n_positions": 16, "n_embd": 32, "n_layer": 1, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(vocab_size=30, **sizes))


def looked_at(model, rows, trainer=Trainer, steps=2):
    settings = TrainingArguments(
        output_dir=tempfile.mkdtemp(), report_to="none", max_steps=steps, disable_tqdm=True, save_strategy="no",
        per_device_train_batch_size=16, use_cpu=True, learning_rate=1e-2,
    )  # fmt: skip
    run = ScriptObserver(looks_again=True)
    try:
        trainer(model, settings, train_dataset=Dataset.from_dict(rows)).train()
    finally:
        run.close()
    before = [p.detach().clone() for p in model.parameters()]
    stage = run.look_again(60)
    assert run.faults == []
    assert all(map(torch.equal, before, model.parameters()))
    assert stage.status == "passed", stage.detail
    (training,) = run.trainings
    return {finding.rule: finding.severity for finding in training.examined.findings}, training.examined


@pytest.mark.parametrize("decoder", [True, False])
def test_bert_that_is_no_decoder_sees_the_next_token(decoder):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertLMHeadModel(BertConfig(vocab_size=30, is_decoder=decoder, **sizes))
    found, examined = looked_at(model, {"input_ids": TOKENS.tolist(), "labels": TOKENS.tolist()})
    assert found.get("future-leak") == (None if decoder else "error")
    assert "future-leak" in examined.judged


def test_padded_texts_of_a_causal_model():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=30, n_positions=16, n_embd=16, n_layer=1, n_head=2))
    mask = (np.arange(12) < np.random.default_rng(0).integers(5, 13, size=(32, 1))).astype(int)
    labels = np.where(mask == 1, TOKENS, -100)
    rows = {"input_ids": TOKENS.tolist(), "attention_mask": mask.tolist(), "labels": labels.tolist()}
    found, _ = looked_at(model, rows)
    assert not {"future-leak", "examples-mixed", "unused-input"} & set(found)


def test_input_that_a_models_own_code_never_uses():
    torch.manual_seed(0)
    rows = {name: torch.randn(32, 4).tolist() for name in ("question", "answer")}
    found, _ = looked_at(Towers(), {**rows, "labels": [n % 2 for n in range(32)]})
    assert found["unused-input"] == "warning"


@pytest.mark.parametrize(("trainer", "severity"), [(UnshiftedTrainer, "warning"), (ShiftedTrainer, None)])
def test_loss_of_the_trainers_own_that_forgets_to_shift(trainer, severity):
    rows = {"input_ids": TOKENS.tolist(), "labels": TOKENS.tolist()}
    found, examined = looked_at(gpt2(), rows, trainer, steps=60)
    assert found.get("labels-in-inputs") == severity
    assert ("future-leak" in examined.judged) == (severity is None)


@pytest.mark.parametrize("hidden", [0, 3])
def test_masked_model_from_which_no_token_is_hidden(hidden):
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = BertForMaskedLM(BertConfig(vocab_size=30, max_position_embeddings=16, **sizes))
    inputs, labels = TOKENS.copy(), TOKENS.copy()
    if hidden:
        masked = np.random.default_rng(0).random(TOKENS.shape) < 0.3
        inputs[masked], labels[~masked] = 0, -100
    found, _ = looked_at(model, {"input_ids": inputs.tolist(), "labels": labels.tolist()}, steps=60)
    assert found.get("labels-in-inputs") == (None if hidden else "warning")
