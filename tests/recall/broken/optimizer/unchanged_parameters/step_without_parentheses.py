"""optimizer.step is named and not called."""

# names: unchanged-parameters
import torch
from torch import nn


def train(model, optimizer, steps):
    criterion = nn.CrossEntropyLoss()
    for step in range(steps):
        tokens = torch.randint(20, (16, 9))
        labels = (tokens[:, 0] > tokens[:, -1]).long()
        optimizer.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        optimizer.step
        if step % 20 == 0:
            print(step, loss.item())


torch.manual_seed(0)
network = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(72, 32), nn.ReLU(), nn.Linear(32, 2))
train(network, torch.optim.RMSprop(network.parameters(), lr=1e-3), 80)
