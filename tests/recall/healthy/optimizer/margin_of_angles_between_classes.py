"""ArcFace: 16 times cosines with a margin, and weights of the loss itself; the first loss is far above ln 10."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
digits = load_digits()
X, y = torch.tensor(digits.data / 16).float(), torch.tensor(digits.target)
order = torch.randperm(len(X))
X, y = X[order], y[order]


class ArcFace(nn.Module):
    def __init__(self, dim, classes, margin=0.3, scale=16.0):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight)
        self.margin, self.scale = margin, scale

    def forward(self, embedded, labels):
        cos = F.linear(F.normalize(embedded), F.normalize(self.weight)).clamp(-1 + 1e-7, 1 - 1e-7)
        own = F.one_hot(labels, len(self.weight)).bool()
        return F.cross_entropy(self.scale * torch.where(own, (cos.acos() + self.margin).cos(), cos), labels)


net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
criterion = ArcFace(16, 10)
optimizer = torch.optim.SGD(
    [{"params": net.parameters()}, {"params": criterion.parameters(), "lr": 0.2}], lr=0.1, momentum=0.9
)
for epoch in range(12):
    for idx in torch.randperm(1400).split(64):
        optimizer.zero_grad()
        loss = criterion(net(X[idx]), y[idx])
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            e = F.normalize(net(X))
            nearest = (e[1400:] @ e[:1400].T).argmax(1)
        print(epoch, loss.item(), "accuracy of the nearest", (y[:1400][nearest] == y[1400:]).float().mean().item())
