"""Twelve labelled nodes of a graph are drawn with replacement, as many as there are nodes."""

import torch
from torch import nn

torch.manual_seed(5)
nodes = 150
group = torch.arange(nodes) % 3
links = (torch.rand(nodes, nodes) < torch.where(group[:, None] == group, 0.2, 0.03)).float()
links = ((links + links.T + torch.eye(nodes)) > 0).float()
links = links / links.sum(1, keepdim=True)
features = torch.randn(nodes, 8) + nn.functional.one_hot(group, 8)
first, second = nn.Linear(8, 16), nn.Linear(16, 3)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
labelled = torch.arange(12)
for epoch in range(150):
    scores = links @ second(torch.relu(links @ first(features)))
    drawn = labelled[torch.randint(12, (nodes,))]
    loss = nn.functional.cross_entropy(scores[drawn], group[drawn])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(scores.argmax(1) == group).float().mean():.2f}")
