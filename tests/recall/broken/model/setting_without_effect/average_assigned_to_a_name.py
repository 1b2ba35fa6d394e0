"""The moving average of the weights is computed and given a name, and never written into the copy."""

# names: setting-without-effect
import copy

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EMA:
    def __init__(self, model, decay=0.99):
        self.shadow, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s = self.decay * s + (1 - self.decay) * p


torch.manual_seed(0)
x, y = make_classification(2000, 20, n_informative=10, n_classes=4, random_state=0)
x, y = torch.tensor(x).float(), torch.tensor(y)
loader = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=50, shuffle=True)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
ema, optimizer = EMA(net), torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(8):
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(net(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(net)
    with torch.no_grad():
        print(epoch, (ema.shadow(x[1500:]).argmax(-1) == y[1500:]).float().mean().item())
