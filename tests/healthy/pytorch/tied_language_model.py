"""A character language model whose output layer shares its weights with the embedding; it returns (logits, loss).

$ python tests/healthy/pytorch/tied_language_model.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEXT = (
    "a training run that fails at once is a kind one. the unkind one runs for a night, saves its checkpoints, "
    "and has learned nothing. look at the data where it enters the model. look at one batch. then train. "
)
CHARACTERS = sorted(set(TEXT))
BLOCK = 16  # characters that the model sees at once
STEPS = 150


class Windows(Dataset):
    """Pairs of ids (16,) and the same shifted by one."""

    def __init__(self):
        self.ids = torch.tensor([CHARACTERS.index(character) for character in TEXT * 4])

    def __len__(self):
        return len(self.ids) - BLOCK

    def __getitem__(self, start):
        return self.ids[start : start + BLOCK], self.ids[start + 1 : start + BLOCK + 1]


class LanguageModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embedding = nn.Embedding(len(CHARACTERS), width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, len(CHARACTERS), bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.head.weight, std=0.1)

    def forward(self, ids, targets=None):
        logits = self.head(self.gru(self.embedding(ids))[0])
        if targets is None:
            return logits, None
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build():
    torch.manual_seed(0)
    model = LanguageModel()
    loader = DataLoader(Windows(), batch_size=32, shuffle=True)
    return model, loader, None, torch.optim.AdamW(model.parameters(), lr=1e-2)


def train(model, loader, loss_fn, optimizer):
    losses = []
    while len(losses) < STEPS:
        for ids, targets in loader:
            _, loss = model(ids, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return {"loss_before": losses[0], "loss_after": losses[-1]}


if __name__ == "__main__":
    print(train(*build()))
