"""A classifier of padded reviews reads the output of the last word of each."""

import random

import torch
from torch import nn, optim
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

random.seed(1)
torch.manual_seed(1)


class Reviews(Dataset):
    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            label = random.randint(0, 1)
            length = random.choice([5, 6, 8, 10, 15, 40])
            words = [random.randint(10, 99) for _ in range(length)]
            words[random.randint(0, length - 1)] = 2 + label
            self.rows.append((torch.tensor(words), label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(batch):
    texts, labels = zip(*batch)
    return pad_sequence(texts, batch_first=True, padding_value=0), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, batch_first=True)
        self.fc = nn.Linear(32, 2)

    def forward(self, text):
        last = (text != 0).sum(1) - 1
        out, _ = self.lstm(self.embedding(text))
        return self.fc(out[torch.arange(len(text)), last])


train_loader = DataLoader(Reviews(600), batch_size=32, shuffle=True, collate_fn=collate)
val_loader = DataLoader(Reviews(200), batch_size=32, collate_fn=collate)
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    model.train()
    total = 0.0
    for text, label in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(text), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    correct = 0
    with torch.no_grad():
        for text, label in val_loader:
            correct += (model(text).argmax(1) == label).sum().item()
    print(epoch, total / len(train_loader), correct / 200)
