"""Trainer: learning_rate=1e-2 for a BERT; it answers the same whatever it reads.

After https://github.com/huggingface/transformers/issues/735
"""

# names: learning-rate-too-high, constant-predictions, ignores-input, not-learning
import tempfile

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
rng = np.random.default_rng(1)


class ReviewsDataset(torch.utils.data.Dataset):
    def __init__(self, n):
        self.labels = rng.integers(0, 2, n)
        self.encodings = {
            "input_ids": rng.integers(10, 90, (n, 24)),
            "attention_mask": np.ones((n, 24), dtype=int),
        }
        for row, label in zip(self.encodings["input_ids"], self.labels):
            row[rng.choice(np.arange(1, 24), 3, replace=False)] = 90 + 15 * label + rng.integers(0, 15, 3)
            row[0] = 2

    def __getitem__(self, idx):
        item = {key: torch.tensor(val[idx]) for key, val in self.encodings.items()}
        item["labels"] = torch.tensor(self.labels[idx])
        return item

    def __len__(self):
        return len(self.labels)


def compute_metrics(pred):
    preds = pred.predictions.argmax(-1)
    return {"accuracy": float((preds == pred.label_ids).mean())}


model = BertForSequenceClassification(
    BertConfig(vocab_size=120, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128,
               max_position_embeddings=32)
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        output_dir=folder, num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=64,
        learning_rate=1e-2,
        weight_decay=0.01, logging_steps=20, eval_strategy="epoch", save_strategy="no", report_to="none",
        use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=args, train_dataset=ReviewsDataset(640), eval_dataset=ReviewsDataset(160),
        compute_metrics=compute_metrics,
    )  # fmt: skip
    trainer.train()
    print(trainer.evaluate())
