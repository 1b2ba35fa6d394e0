"""Three hundred rows and a wide net: the training loss nears zero, the validation loss turns and rises."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(700, 30)
y = ((x[:, :5].sum(1) + 0.8 * torch.randn(700)) > 0).long()
net = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
best = None
for epoch in range(12):
    net.train()
    for rows in torch.randperm(300).split(30):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        out = net(x[300:])
        val = nn.functional.cross_entropy(out, y[300:]).item()
        acc = (out.argmax(1) == y[300:]).float().mean().item()
    if best is None or val < best[0]:
        best = val, {name: value.clone() for name, value in net.state_dict().items()}
    print(f"{epoch}: train {loss.item():.3f} val {val:.3f} acc {acc:.3f}")
net.load_state_dict(best[1])
