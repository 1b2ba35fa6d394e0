"""A Trainer trains; the test set is then scored by hand, in the mode that the Trainer left."""

# names: train-mode-evaluation
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)


class TokenNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.norm = nn.BatchNorm1d(32)
        self.out = nn.Linear(32, 3)

    def forward(self, input_ids, labels=None):
        logits = self.out(torch.relu(self.norm(self.embed(input_ids).mean(1))))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def sentences(count):
    labels = torch.randint(3, (count,))
    tokens = torch.randint(50, (count, 12))
    tokens[:, ::3] = labels[:, None] * 4 + torch.randint(4, (count, 4))
    return tokens, labels


tokens, labels = sentences(640)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=32,
        num_train_epochs=4,
        learning_rate=5e-3,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
    )
    model = TokenNet()
    rows = [{"input_ids": t, "labels": y} for t, y in zip(tokens, labels, strict=True)]
    Trainer(model, arguments, train_dataset=rows).train()
right = 0
tokens, labels = sentences(120)
with torch.inference_mode():
    for start in range(0, 120, 6):
        part = slice(start, start + 6)
        right += (model(tokens[part])["logits"].argmax(1) == labels[part]).sum().item()
print("accuracy", right / 120)
