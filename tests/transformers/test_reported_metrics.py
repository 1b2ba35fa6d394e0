"""What `compute_metrics` returns is compared with the predictions of the same evaluation."""

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    set_seed,
)

from diagnostics.run.observer import ScriptObserver

RNG = np.random.default_rng(0)
WALKS = [np.cumsum(RNG.integers(0, 3, size=14)) % 20 for _ in range(240)]


def found(model, rows, metric, folder):
    arguments = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=16, learning_rate=5e-3, eval_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    run = ScriptObserver()
    try:
        Trainer(
            model, arguments, train_dataset=rows[:160], eval_dataset=rows[160:], compute_metrics=metric
        ).train()
    finally:
        run.close()
    assert run.faults == []
    names = "misreported-metric", "metric-on-logits"
    return [(f.rule, f.severity) for report in run.examined for f in report.findings if f.rule in names]


@pytest.mark.parametrize("shifted", [False, True])
def test_names_tokens_compared_with_those_at_their_own_position(shifted, tmp_path):
    def metric(evaluation):
        answers, labels = evaluation.predictions.argmax(-1), evaluation.label_ids
        answers, labels = (answers[:, :-1], labels[:, 1:]) if shifted else (answers, labels)
        return {"accuracy": float((answers == labels).mean())}

    set_seed(0)
    config = {"n_positions": 14, "n_embd": 32, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    rows = [{"input_ids": torch.tensor(walk), "labels": torch.tensor(walk)} for walk in WALKS]
    said = found(GPT2LMHeadModel(GPT2Config(vocab_size=20, **config)), rows, metric, tmp_path)
    assert said == ([] if shifted else [("misreported-metric", "warning")])


@pytest.mark.parametrize("masked", [False, True])
def test_names_ignored_labels_that_were_counted(masked, tmp_path):
    def metric(evaluation):
        answers, labels = evaluation.predictions.argmax(-1).ravel(), evaluation.label_ids.ravel()
        counted = labels >= 0 if masked else np.ones(len(labels), bool)
        return {"accuracy": float((answers == labels)[counted].mean())}

    set_seed(0)
    config = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    rows = [
        {"input_ids": torch.tensor(walk), "labels": torch.tensor(np.where(np.arange(14) < 9, walk % 3, -100))}
        for walk in WALKS
    ]
    model = BertForTokenClassification(BertConfig(vocab_size=20, num_labels=3, **config))
    assert found(model, rows, metric, tmp_path) == ([] if masked else [("misreported-metric", "warning")])
