"""A batch is one dict; the model reads what it needs, the loop the rest."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Records(Dataset):
    def __init__(self):
        self.x = torch.randn(512, 7)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        row = self.x[i]
        return {"image": row, "label": int(row[0] > row[1]), "weight": 1.0 + 0.1 * (i % 3), "id": i}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(7, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, batch):
        return self.layers(batch["image"])


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(8):
    for batch in DataLoader(Records(), batch_size=32, shuffle=True):
        each = nn.functional.cross_entropy(net(batch), batch["label"], reduction="none")
        loss = (each * batch["weight"]).mean().float()
        opt.zero_grad()
        loss.backward()
        opt.step()
print("loss", round(loss.item(), 3))
