"""Several questions about each picture: the same features come with other answers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
VOCABULARY, ANSWERS = 20, 4

pictures = torch.randn(200, 32)
which = torch.randint(200, (800,))
questions = torch.randint(VOCABULARY, (800, 6))
answers = ((pictures[which, 0] > 0).long() + questions[:, 0] % 3) % ANSWERS


class Answerer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, 8)
        self.reader = nn.LSTM(8, 16, batch_first=True)
        self.head = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, ANSWERS))

    def forward(self, picture, question):
        read, _ = self.reader(self.words(question))
        return self.head(torch.cat([picture, read[:, -1]], dim=1))


loader = DataLoader(TensorDataset(pictures[which], questions, answers), batch_size=32, shuffle=True)
model = Answerer()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for epoch in range(8):
    for picture, question, answer in loader:
        loss = nn.functional.cross_entropy(model(picture, question), answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
