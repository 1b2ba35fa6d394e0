"""log_softmax over dim=0 before the negative log-likelihood, in a small CNN."""

# names: examples-mixed
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc1 = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.fc1(torch.flatten(x, 1))
        return F.log_softmax(x, dim=0)


torch.manual_seed(1)
digits = torch.randint(10, (1024,))
images = 0.3 * torch.randn(1024, 1, 14, 14)
images[torch.arange(1024), 0, digits] += 1
train_loader = DataLoader(TensorDataset(images, digits), batch_size=64, shuffle=True)
net = ConvNet()
opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(5):
    for data, target in train_loader:
        opt.zero_grad()
        loss = F.nll_loss(net(data), target)
        loss.backward()
        opt.step()
    print(f"Train Epoch: {epoch} \tLoss: {loss.item():.6f}")
