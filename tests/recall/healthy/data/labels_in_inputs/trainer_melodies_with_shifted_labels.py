"""Healthy: a Trainer and a model of melodies by the script, which shifts the labels itself."""

import random

from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

set_seed(2)
NOTES, LENGTH = 24, 20
random.seed(2)


def melody():
    note, notes = random.randrange(NOTES), []
    for _ in range(LENGTH):
        notes.append(note)
        note = (note + random.choice([-2, -1, 1, 2, 5])) % NOTES
    return notes


tunes = [melody() for _ in range(600)]
train = Dataset.from_dict({"notes": tunes, "labels": tunes}).with_format("torch")


class Melodies(nn.Module):
    def __init__(self):
        super().__init__()
        self.notes = nn.Embedding(NOTES, 48)
        self.memory = nn.LSTM(48, 64, batch_first=True)
        self.out = nn.Linear(64, NOTES)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, notes, labels=None):
        scores = self.out(self.memory(self.notes(notes))[0])
        if labels is None:
            return (scores,)
        return self.criterion(scores[:, :-1].transpose(1, 2), labels[:, 1:]), scores


arguments = TrainingArguments(
    output_dir="melodies",
    num_train_epochs=6,
    per_device_train_batch_size=24,
    learning_rate=1e-2,
    save_strategy="no",
    logging_steps=50,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
model = Melodies()
Trainer(model=model, args=arguments, train_dataset=train).train()
model.eval()
