"""Two heads, two losses, and backward is called on the sum of both."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
x = torch.randn(1500, 16)
gender = (x[:, :3].sum(1) > 0).long()
age = (x[:, 3] * 2 + x[:, 4]).unsqueeze(1)
loader = DataLoader(TensorDataset(x, gender, age), batch_size=50, shuffle=True)


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(16, 48), nn.ReLU())
        self.gender = nn.Linear(48, 2)
        self.age = nn.Sequential(nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        h = self.shared(x)
        return {"gender": self.gender(h), "age": self.age(h)}


model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    log = {"gender": 0.0, "age": 0.0, "total": 0.0}
    for inputs, genders, ages in loader:
        out = model(inputs)
        loss = F.cross_entropy(out["gender"], genders)
        age_loss = F.mse_loss(out["age"], ages)
        total_loss = loss + 0.5 * age_loss
        optimizer.zero_grad()
        total_loss.backward()
        optimizer.step()
        for name, value in (("gender", loss), ("age", age_loss), ("total", total_loss)):
            log[name] += value.item() / len(loader)
    print(epoch, {name: round(value, 3) for name, value in log.items()})
