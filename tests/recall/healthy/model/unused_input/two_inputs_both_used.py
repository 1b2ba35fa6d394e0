"""Two towers, each of its own input."""

import torch
from torch import nn

torch.manual_seed(0)


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 16), nn.Linear(8, 16)
        self.head = nn.Linear(32, 2)

    def forward(self, question, answer):
        return self.head(torch.cat([self.left(question).relu(), self.right(answer).relu()], dim=1))


model = TwoTowers()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(400):
    question, answer = torch.randn(64, 8), torch.randn(64, 8)
    labels = ((question[:, 0] + answer[:, 0]) > 0).long()
    loss = nn.functional.cross_entropy(model(question, answer), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
