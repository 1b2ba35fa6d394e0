"""The weight decay is a thousand times the usual one: the weights shrink to nothing and the loss stays at ln 4."""

# names: not-learning
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
centres = torch.randn(4, 20) * 1.5
y = torch.randint(4, (1200,))
x = centres[y] + torch.randn(1200, 20)
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)

net = torch.nn.Sequential(
    torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)
)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=200.0)
for epoch in range(10):
    total = 0.0
    for xb, yb in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
