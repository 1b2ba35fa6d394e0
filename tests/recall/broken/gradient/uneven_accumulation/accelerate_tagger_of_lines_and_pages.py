"""A tagger marks words in lines and in whole pages, a few texts of about one length at a time, with accelerate."""

# names: uneven-accumulation
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

set_seed(2)
WORDS, TAGS = 60, 4


def text():
    length = int(torch.randint(4, 12, ())) if torch.rand(()) < 0.75 else int(torch.randint(90, 160, ()))
    words = torch.randint(1, WORDS, (length,))
    before = torch.cat([words[:1], words[:-1]])
    return words, (words + before) % TAGS


class ByLength:
    """Batches of four texts of similar length, in random order."""

    def __init__(self, texts):
        by_length = sorted(range(len(texts)), key=lambda number: len(texts[number][0]))
        self.batches = [by_length[i : i + 4] for i in range(0, len(by_length), 4)]

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter([self.batches[i] for i in torch.randperm(len(self.batches)).tolist()])


def collate(rows):
    words = pad_sequence([row[0] for row in rows], batch_first=True)
    tags = pad_sequence([row[1] for row in rows], batch_first=True, padding_value=-1)
    return words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32, padding_idx=0)
        self.near = nn.Conv1d(32, 64, 3, padding=1)
        self.out = nn.Linear(64, TAGS)

    def forward(self, words):
        return self.out(self.near(self.embed(words).transpose(1, 2)).relu().transpose(1, 2))


accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
texts = [text() for _ in range(640)]
loader = DataLoader(texts, batch_sampler=ByLength(texts), collate_fn=collate)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
criterion = nn.CrossEntropyLoss(ignore_index=-1)
for epoch in range(3):
    for words, tags in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(words).flatten(0, 1), tags.flatten())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: {loss.item():.3f}")
