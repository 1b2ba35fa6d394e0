"""A ranker: the rows are the documents of one query, and the softmax runs over them."""

import torch
from torch import nn

torch.manual_seed(0)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, documents):
        return torch.log_softmax(self.net(documents), dim=0).squeeze(1)


truth = torch.randn(10)
ranker = Ranker()
optimizer = torch.optim.Adam(ranker.parameters(), lr=1e-3)
for query in range(400):
    documents = torch.randn(20, 10)
    relevance = torch.softmax(2 * documents @ truth, dim=0)
    loss = -(relevance * ranker(documents)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", round(loss.item(), 3))
