"""num_labels=1 for a binary task: the Trainer fits a regression, and the argmax of one column is always 0.

After https://github.com/huggingface/transformers/pull/11569
"""

# names: constant-predictions, metric-on-logits
import random
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)


class Tweets(Dataset):
    def __init__(self, count):
        self.rows = []
        for _ in range(count):
            label = random.randrange(2)
            ids = [random.randrange(10, 60) for _ in range(14)]
            ids[random.randrange(14)] = 3 + label
            self.rows.append((ids, label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.ones(14, dtype=torch.long),
            "labels": torch.tensor(float(label)),
        }


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    predictions = np.argmax(logits, axis=-1)
    return {"accuracy": float((predictions == labels).mean())}


config = BertConfig(
    vocab_size=60, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=16, num_labels=1,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=6, per_device_train_batch_size=16, learning_rate=2e-3, eval_strategy="epoch",
        save_strategy="no", logging_steps=20, use_cpu=True, disable_tqdm=True, report_to=[],
    )  # fmt: skip
    Trainer(
        model=BertForSequenceClassification(config), args=args, train_dataset=Tweets(600),
        eval_dataset=Tweets(150), compute_metrics=compute_metrics,
    ).train()  # fmt: skip
