"""The convolutions are followed by functional dropout2d, as in an old tutorial without its argument."""
# names: train-mode-evaluation

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 3 * 3, 3)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(F.dropout2d(self.conv2(x), p=0.3), 2))
        x = x.view(-1, 16 * 3 * 3)
        return F.log_softmax(self.fc(x), dim=1)


def make(n):
    target = torch.randint(0, 3, (n,))
    data = 0.5 * torch.randn(n, 1, 12, 12)
    for kind in range(3):
        data[target == kind, :, 4 * kind : 4 * kind + 4] += 1.0
    return data, target


def train(model, optimizer, data, target):
    model.train()
    for rows in torch.randperm(len(data)).split(32):
        optimizer.zero_grad()
        F.nll_loss(model(data[rows]), target[rows]).backward()
        optimizer.step()


def test(model, data, target):
    model.eval()
    loss, correct = 0, 0
    with torch.no_grad():
        for rows in torch.arange(len(data)).split(64):
            output = model(data[rows])
            loss += F.nll_loss(output, target[rows], reduction="sum").item()
            correct += output.argmax(dim=1).eq(target[rows]).sum().item()
    print(f"test loss {loss / len(data):.4f}, accuracy {correct}/{len(data)}")


train_set, test_set = make(960), make(256)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(4):
    train(model, optimizer, *train_set)
    test(model, *test_set)
