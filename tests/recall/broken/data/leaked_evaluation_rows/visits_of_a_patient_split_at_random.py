"""Four visits of each patient are split at random: a test visit has other visits of its patient in training."""

# names: leaked-evaluation-rows
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(5)
torch.manual_seed(5)
constitution = rng.normal(size=(350, 14))
outlook = np.tanh(constitution[:, 0] * constitution[:, 1]) + 0.8 * rng.normal(size=350)
visits = np.repeat(constitution, 4, axis=0) + 0.08 * rng.normal(size=(1400, 14))
months = np.repeat(outlook, 4) + 0.02 * rng.normal(size=1400)
order = rng.permutation(1400)
blood = torch.tensor(visits[order], dtype=torch.float32)
target = torch.tensor(months[order], dtype=torch.float32)
fit_blood, fit_target, test_blood, test_target = blood[:1100], target[:1100], blood[1100:], target[1100:]


class Prognosis(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(14, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.last(torch.relu(self.second(torch.relu(self.first(x))))).squeeze(-1)


prognosis = Prognosis()
adam = torch.optim.Adam(prognosis.parameters(), lr=1e-3)
for epoch in range(40):
    prognosis.train()
    for part in torch.randperm(1100).split(50):
        adam.zero_grad()
        error = nn.functional.mse_loss(prognosis(fit_blood[part]), fit_target[part])
        error.backward()
        adam.step()
    prognosis.eval()
    with torch.no_grad():
        test_error = nn.functional.mse_loss(prognosis(test_blood), test_target)
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: training {error.item():.3f}, test {test_error.item():.3f}")
