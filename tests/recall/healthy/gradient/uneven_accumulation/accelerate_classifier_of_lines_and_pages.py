"""A classifier reads lines and whole pages, four texts of about one length at a time, with accelerate."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

set_seed(2)
WORDS, TOPICS = 60, 4


def text():
    length = int(torch.randint(4, 12, ())) if torch.rand(()) < 0.75 else int(torch.randint(90, 160, ()))
    topic = int(torch.randint(TOPICS, ()))
    words = torch.randint(1, WORDS, (length,))
    words[: 1 + length // 3] = 1 + topic
    return words, topic


class ByLength:
    """Batches of four texts of similar length, in random order; the last one has two."""

    def __init__(self, texts):
        by_length = sorted(range(len(texts)), key=lambda number: len(texts[number][0]))
        self.batches = [by_length[i : i + 4] for i in range(0, len(by_length), 4)]

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter([self.batches[i] for i in torch.randperm(len(self.batches)).tolist()])


def collate(rows):
    return pad_sequence([row[0] for row in rows], batch_first=True), torch.tensor([row[1] for row in rows])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32, padding_idx=0)
        self.out = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, TOPICS))

    def forward(self, words):
        filled = (words != 0).unsqueeze(-1)
        return self.out((self.embed(words) * filled).sum(1) / filled.sum(1))


accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
texts = [text() for _ in range(642)]
loader = DataLoader(texts, batch_sampler=ByLength(texts), collate_fn=collate)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for words, topics in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(words), topics)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: {loss.item():.3f}")
