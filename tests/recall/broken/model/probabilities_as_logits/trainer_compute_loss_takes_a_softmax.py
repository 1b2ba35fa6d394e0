"""compute_loss takes a softmax, and cross entropy another one."""
# names: probabilities-as-logits

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
rng = np.random.default_rng(1)
ids = rng.integers(5, 80, (600, 16))
labels = (ids[:, :4].sum(1) % 2 == 0).astype(int) * 0 + (ids[:, 0] > 40)
ds = Dataset.from_dict(
    {
        "input_ids": ids.tolist(),
        "attention_mask": np.ones_like(ids).tolist(),
        "labels": labels.astype(int).tolist(),
    }
)


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        probs = torch.softmax(outputs.logits, dim=-1)
        loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.5]))(probs, labels)
        return (loss, outputs) if return_outputs else loss


config = BertConfig(
    vocab_size=80, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, num_labels=2
)
args = TrainingArguments(
    "out",
    num_train_epochs=4,
    per_device_train_batch_size=16,
    learning_rate=2e-3,
    report_to=[],
    save_strategy="no",
    eval_strategy="epoch",
)
split = ds.train_test_split(0.2, seed=0)
trainer = WeightedTrainer(
    BertForSequenceClassification(config), args, train_dataset=split["train"], eval_dataset=split["test"]
)
trainer.train()
