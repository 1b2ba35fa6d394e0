"""Trainer: a head of one's own ends in a softmax, and the loss is a cross entropy of what comes out."""

# names: probabilities-as-logits
import tempfile

import numpy as np
from torch import nn
from transformers import BertConfig, BertModel, Trainer, TrainingArguments, set_seed

set_seed(2)
rng = np.random.default_rng(2)


class CustomBert(nn.Module):
    def __init__(self, config, n_classes):
        super().__init__()
        self.bert = BertModel(config)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(config.hidden_size, n_classes)
        self.softmax = nn.Softmax(dim=1)
        self.loss_fct = nn.CrossEntropyLoss()

    def forward(self, input_ids, attention_mask=None, labels=None):
        pooled = self.bert(input_ids, attention_mask=attention_mask).pooler_output
        logits = self.softmax(self.out(self.drop(pooled)))
        loss = self.loss_fct(logits, labels) if labels is not None else None
        return {"loss": loss, "logits": logits}


def topics(n):
    rows = []
    for label in rng.integers(0, 4, n):
        ids = rng.integers(10, 100, 16)
        ids[rng.choice(16, 4, replace=False)] = 100 + 10 * label + rng.integers(0, 10, 4)
        rows.append({"input_ids": ids.tolist(), "attention_mask": [1] * 16, "labels": int(label)})
    return rows


config = BertConfig(
    vocab_size=140, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=32,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=5e-4, eval_strategy="epoch",
        save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        CustomBert(config, 4), args, train_dataset=topics(640), eval_dataset=topics(120),
        compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
    )  # fmt: skip
    trainer.train()
