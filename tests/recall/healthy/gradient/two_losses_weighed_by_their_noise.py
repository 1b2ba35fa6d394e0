"""Multi-task learning after Kendall et al.: two losses weighed by parameters that forward does not read."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_diabetes

torch.manual_seed(0)
d = load_diabetes()
X = torch.tensor(d.data / d.data.std(0), dtype=torch.float32)
target = torch.tensor(d.target, dtype=torch.float32)
y_reg = (target - target.mean()) / target.std()
y_cls = (target > target.median()).float()


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.reg, self.cls = nn.Linear(32, 1), nn.Linear(32, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.reg(h).squeeze(-1), self.cls(h).squeeze(-1)


model = MultiTask()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
for epoch in range(20):
    for idx in torch.randperm(340).split(34):
        reg, cls = model(X[idx])
        l_reg = F.mse_loss(reg, y_reg[idx])
        l_cls = F.binary_cross_entropy_with_logits(cls, y_cls[idx])
        precision = torch.exp(-model.log_vars)
        loss = (precision[0] * l_reg + precision[1] * l_cls + model.log_vars.sum()) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            reg, cls = model(X[340:])
            mse, acc = F.mse_loss(reg, y_reg[340:]), ((cls > 0).float() == y_cls[340:]).float().mean()
        print(epoch, f"mse {mse:.3f} accuracy {acc:.3f} log variances {model.log_vars.tolist()}")
