"""A GRU over padded utterances, read at the last step of each."""

import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

random.seed(0)
torch.manual_seed(0)
PAD = 0


def utterance():
    command = random.randrange(4)
    frames = torch.randn(random.choice([4, 6, 9, 12, 30]), 6) * 0.4
    frames[random.randrange(len(frames)), command] += 3.0
    return frames, command


def batches(data, size, shuffle=True):
    order = list(range(len(data)))
    if shuffle:
        random.shuffle(order)
    for start in range(0, len(order), size):
        chunk = [data[i] for i in order[start : start + size]]
        x = pad_sequence([frames for frames, _ in chunk], padding_value=PAD)
        lengths = torch.tensor([len(frames) for frames, _ in chunk])
        yield x, lengths, torch.tensor([command for _, command in chunk])


class SpeechCommands(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(6, hidden)
        self.out = nn.Linear(hidden, 4)

    def forward(self, x, lengths):
        output, _ = self.gru(x)
        return self.out(output[lengths - 1, torch.arange(x.size(1))])


train_data = [utterance() for _ in range(800)]
test_data = [utterance() for _ in range(200)]
model = SpeechCommands()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(1, 9):
    model.train()
    epoch_loss, steps = 0.0, 0
    for x, lengths, y in batches(train_data, 32):
        model.zero_grad()
        loss = criterion(model(x, lengths), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss, steps = epoch_loss + loss.item(), steps + 1
    model.eval()
    with torch.no_grad():
        correct = sum(
            (model(x, n).argmax(1) == y).sum().item() for x, n, y in batches(test_data, 50, shuffle=False)
        )
    print(f"epoch {epoch} | loss {epoch_loss / steps:.4f} | accuracy {correct / len(test_data):.3f}")
