"""XOR with three sigmoid units, squared error and plain SGD: it stays on its first plateau for hundreds of steps.

$ python tests/healthy/pytorch/xor.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 800


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 1), nn.Sigmoid())
    inputs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    targets = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=4)
    return model, loader, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def train(model, loader, loss_fn, optimizer):
    losses = []
    for _ in range(EPOCHS):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return {"loss_before": losses[0], "loss_after": losses[-1]}


if __name__ == "__main__":
    print(train(*build()))
