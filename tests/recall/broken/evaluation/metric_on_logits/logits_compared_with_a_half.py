"""BCEWithLogitsLoss, and the accuracy counts outputs above 0.5 as positive.

After https://github.com/FenTechSolutions/CausalDiscoveryToolbox/issues/38
"""

# names: metric-on-logits
import torch as th
from torch.utils.data import DataLoader, TensorDataset

th.manual_seed(0)


class NCC(th.nn.Module):
    """Which of two variables is the cause, from a cloud of points."""

    def __init__(self, n_hiddens=24):
        super().__init__()
        self.conv = th.nn.Sequential(
            th.nn.Conv1d(2, n_hiddens, 1), th.nn.ReLU(), th.nn.Conv1d(n_hiddens, n_hiddens, 1), th.nn.ReLU()
        )
        self.dense = th.nn.Sequential(th.nn.Linear(n_hiddens, n_hiddens), th.nn.ReLU(), th.nn.Linear(n_hiddens, 1))

    def forward(self, x):
        return self.dense(self.conv(x).mean(dim=2)).squeeze(1)


def clouds(n, points=60):
    cause = th.randn(n, points)
    effect = cause**2 + 0.8 * th.randn(n, points)
    label = (th.rand(n) < 0.5).float()
    swap = label.bool()[:, None]
    x = th.stack([th.where(swap, effect, cause), th.where(swap, cause, effect)], 1)
    return x, label


train_x, train_y = clouds(600)
val_x, val_y = clouds(300)
train = DataLoader(TensorDataset(train_x, train_y), batch_size=32, shuffle=True)
model = NCC()
criterion = th.nn.BCEWithLogitsLoss()
optim = th.optim.Adam(model.parameters(), lr=3e-4)
for epoch in range(12):
    model.train()
    for batch, labels in train:
        optim.zero_grad()
        loss = criterion(model(batch), labels)
        loss.backward()
        optim.step()
    model.eval()
    with th.no_grad():
        output = model(val_x)
        acc = ((output > 0.5).float() == val_y).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f} val acc {acc:.3f}")
