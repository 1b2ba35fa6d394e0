"""normal_(0, 1) for layers of 256 inputs: every tanh is at -1 or 1 from the first batch."""

# names: saturated-activations, initial-loss-off
import torch
import torch.nn as nn
import torch.nn.functional as F


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(64, 256)
        self.l2 = nn.Linear(256, 256)
        self.l3 = nn.Linear(256, 256)
        self.l4 = nn.Linear(256, 6)
        self.reset()

    def reset(self):
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 1)

    def forward(self, x):
        x = torch.tanh(self.l1(x))
        x = torch.tanh(self.l2(x))
        x = torch.tanh(self.l3(x))
        return self.l4(x)


torch.manual_seed(0)
w = torch.randn(64, 6)
model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(400):
    x = torch.randn(64, 64)
    y = (x @ w).argmax(1)
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item(), (logits.argmax(1) == y).float().mean().item())
