"""The weights of the last epochs are averaged into a second network; the list holds the live tensors each time."""

# names: weights-kept-by-reference
import torch
import torch.nn as nn

torch.manual_seed(5)
weights = torch.randn(12)
hours = torch.randn(400, 12)
load = hours @ weights + 0.5 * torch.randn(400)


def regressor():
    return nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1))


def train_one_epoch(net, rate):
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for rows in torch.randperm(300).split(30):
        loss = nn.functional.mse_loss(net(hours[rows])[:, 0], load[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def averaged(states):
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}


net, mean_net = regressor(), regressor()
last = []
for epoch in range(20):
    loss = train_one_epoch(net, rate=0.02)
    if epoch >= 14:
        last.append(net.state_dict())
mean_net.load_state_dict(averaged(last))
with torch.no_grad():
    error = nn.functional.mse_loss(mean_net(hours[300:])[:, 0], load[300:]).item()
print(f"loss {loss:.3f}, error of the average {error:.3f}")
