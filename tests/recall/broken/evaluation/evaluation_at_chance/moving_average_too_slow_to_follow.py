"""A short run is evaluated with the moving average of its weights; a decay of 0.9999 leaves these at their start.

After https://github.com/lucidrains/DALLE2-pytorch/issues/131
"""

# names: evaluation-at-chance, evaluation-mismatch
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class ModelEma:
    def __init__(self, model, decay=0.9999):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema, live in zip(self.module.state_dict().values(), model.state_dict().values()):
            ema.copy_(self.decay * ema + (1 - self.decay) * live)


centres = torch.randn(5, 30)
y = torch.randint(5, (2000,))
x = centres[y] + torch.randn(2000, 30)
train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=100)


def validate(model):
    hits = loss = 0
    with torch.no_grad():
        for images, target in val_loader:
            output = model(images)
            loss += nn.functional.cross_entropy(output, target).item()
            hits += (output.argmax(1) == target).sum().item()
    return loss / len(val_loader), hits / 400


model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 5))
ema = ModelEma(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    model.train()
    for images, target in train_loader:
        loss = nn.functional.cross_entropy(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
    print(epoch, loss.item(), validate(ema.module))
