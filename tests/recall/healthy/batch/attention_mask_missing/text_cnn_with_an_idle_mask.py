"""A convolution and the maximum over positions; the tokenizer's mask comes along and has nothing to do."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(2)
torch.manual_seed(2)


class Questions(Dataset):
    def __init__(self, count):
        self.rows = []
        for _ in range(count):
            kind = random.randrange(3)
            words = [random.randint(30, 99) for _ in range(random.choice([5, 7, 9, 12, 30]))]
            place = random.randrange(len(words) - 1)
            words[place : place + 2] = [3 + 2 * kind, 4 + 2 * kind]
            self.rows.append((words, kind))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 24)
        self.convolve = nn.Conv1d(24, 48, 3, padding=1)
        self.classify = nn.Linear(48, 3)

    def forward(self, tokens):
        hidden = torch.relu(self.convolve(self.embed(tokens).transpose(1, 2)))
        return self.classify(hidden.amax(2))


def collate(rows):
    longest = max(len(words) for words, _ in rows)
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for row, (words, _) in enumerate(rows):
        tokens[row, : len(words)] = torch.tensor(words)
        mask[row, : len(words)] = 1
    return tokens, mask, torch.tensor([kind for _, kind in rows])


train_loader = DataLoader(Questions(800), batch_size=32, shuffle=True, collate_fn=collate)
val_loader = DataLoader(Questions(200), batch_size=64, collate_fn=collate)
model = TextCNN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    model.train()
    for tokens, _, kinds in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), kinds)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(tokens).argmax(1) == kinds).sum().item() for tokens, _, kinds in val_loader)
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right / 200:.3f}")
