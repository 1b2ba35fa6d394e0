"""The model takes two inputs and concatenates the first one twice."""

# names: unused-input
import torch
from torch import nn

torch.manual_seed(0)


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 16), nn.Linear(8, 16)
        self.head = nn.Linear(32, 2)

    def forward(self, question, answer):
        left = self.left(question).relu()
        right = self.right(question).relu()
        return self.head(torch.cat([left, right], dim=1))


model = TwoTowers()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(300):
    question, answer = torch.randn(64, 8), torch.randn(64, 8)
    labels = ((question[:, 0] + answer[:, 0]) > 0).long()
    loss = nn.functional.cross_entropy(model(question, answer), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
