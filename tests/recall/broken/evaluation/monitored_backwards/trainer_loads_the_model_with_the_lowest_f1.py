"""Trainer: greater_is_better=False was copied from a script that watched the loss, and the metric is F1."""

# names: monitored-backwards
import tempfile

import numpy as np
import torch
from transformers import (
    EarlyStoppingCallback,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)

set_seed(14)
rng = np.random.default_rng(14)
base = rng.normal(size=(4, 3, 12, 12)).astype("float32")


def rows(n):
    y = rng.integers(0, 4, n)
    noise = 2.0 * rng.normal(size=(n, 3, 12, 12)).astype("float32")
    return [{"pixel_values": torch.from_numpy(base[k] + e), "labels": int(k)} for k, e in zip(y, noise)]


def compute_metrics(p):
    pred, f1 = p.predictions.argmax(-1), []
    for c in range(4):
        hits = ((pred == c) & (p.label_ids == c)).sum()
        f1.append(2 * hits / max((pred == c).sum() + (p.label_ids == c).sum(), 1))
    return {"f1": float(np.mean(f1))}


config = ViTConfig(
    image_size=12, patch_size=4, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
    num_labels=4,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=1e-3, eval_strategy="epoch",
        save_strategy="epoch", report_to="none", use_cpu=True, disable_tqdm=True, load_best_model_at_end=True,
        metric_for_best_model="f1", greater_is_better=False,
    )  # fmt: skip
    trainer = Trainer(
        ViTForImageClassification(config), args, train_dataset=rows(480), eval_dataset=rows(120),
        compute_metrics=compute_metrics, callbacks=[EarlyStoppingCallback(early_stopping_patience=3)],
    )  # fmt: skip
    trainer.train()
    print(trainer.evaluate(rows(120)))
