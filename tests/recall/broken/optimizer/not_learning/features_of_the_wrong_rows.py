"""Features are indexed by the batch's position and targets by the shuffled order: pairs of strangers."""

# names: not-learning, labels-unrelated
import numpy as np
import torch

rng = np.random.default_rng(7)
features = rng.normal(size=(1000, 6)).astype("float32")
targets = (features @ np.array([1.0, -2, 0.5, 0, 1, 3]) + 0.1 * rng.normal(size=1000)).astype("float32")
targets = (targets - targets.mean()) / targets.std()

torch.manual_seed(0)
regressor = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
adam = torch.optim.Adam(regressor.parameters(), 2e-3)
mse = torch.nn.MSELoss()


def train_epoch():
    order, losses = rng.permutation(len(features)), []
    for start in range(0, len(order), 50):
        inputs = torch.from_numpy(features[start : start + 50])
        wanted = torch.from_numpy(targets[order[start : start + 50]])
        loss = mse(regressor(inputs)[:, 0], wanted)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


for epoch in range(12):
    print(epoch, train_epoch())
