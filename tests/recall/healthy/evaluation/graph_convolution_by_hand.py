"""Nodes of one graph, a mask for those with labels, full batch: answers depend on neighbours by design."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, CLASSES = 240, 4
labels = torch.arange(N) % CLASSES
same = labels[:, None] == labels[None]
adj = (torch.rand(N, N) < torch.where(same, 0.08, 0.01)).float()
adj = ((adj + adj.t()) > 0).float() + torch.eye(N)
norm = adj.sum(1).rsqrt()
adj = norm[:, None] * adj * norm
features = F.one_hot(labels, CLASSES).float() @ torch.randn(CLASSES, 32) + 2.0 * torch.randn(N, 32)
train_mask = torch.rand(N) < 0.3


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(32, 16), nn.Linear(16, CLASSES)

    def forward(self, x, adj):
        x = F.dropout(x, 0.2, training=self.training)
        x = F.relu(adj @ self.w1(x))
        return F.log_softmax(adj @ self.w2(x), dim=1)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(150):
    model.train()
    optimizer.zero_grad()
    out = model(features, adj)
    loss = F.nll_loss(out[train_mask], labels[train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 30 == 29:
        model.eval()
        with torch.no_grad():
            hits = (model(features, adj).argmax(1) == labels)[~train_mask].float().mean().item()
        print(f"epoch {epoch + 1} loss {loss.item():.3f} test accuracy {hits:.3f}")
