"""A character model with a bidirectional LSTM: the backward half has read the next character."""

# names: future-leak
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

text = "the quick brown fox jumps over the lazy dog and runs away from the bear " * 60
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
SEQ = 20


class CharDataset(Dataset):
    def __init__(self, s):
        self.ids = torch.tensor([stoi[c] for c in s])

    def __len__(self):
        return len(self.ids) // SEQ - 1

    def __getitem__(self, i):
        chunk = self.ids[i * SEQ : i * SEQ + SEQ + 1]
        return chunk[:-1], chunk[1:]


class CharRNN(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed = nn.Embedding(n, 24)
        self.lstm = nn.LSTM(24, 48, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(96, n)

    def forward(self, x, hidden=None):
        out, hidden = self.lstm(self.embed(x), hidden)
        return self.fc(out), hidden


if __name__ == "__main__":
    torch.manual_seed(0)
    net = CharRNN(len(chars))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    for epoch in range(3):
        for x, y in DataLoader(CharDataset(text), batch_size=16, shuffle=True):
            logits, _ = net(x)
            loss = nn.functional.cross_entropy(logits.view(-1, len(chars)), y.view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
