"""An optimizer is taken over from reinforcement learning, with maximize=True, for a cross entropy."""

# names: inverted-loss, loss-divergence, exploding-gradients
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
centres = torch.randn(4, 12) * 2
labels = torch.arange(1200) % 4
data = TensorDataset(centres[labels] + torch.randn(1200, 12), labels)
loader = DataLoader(data, batch_size=32, shuffle=True)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(12, 48)
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


model = Policy()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, maximize=True)
for epoch in range(6):
    right = 0
    for x, target in loader:
        logits = model(x)
        loss = F.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(dim=1) == target).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right / len(data):.3f}")
