"""PyTorch: nn.Softmax(dim=1) at the end of a network with one output, under BCELoss."""

# names: ignores-input
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.fc1 = nn.Linear(n_features, 32)
        self.fc2 = nn.Linear(32, 16)
        self.out = nn.Linear(16, 1)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.softmax(self.out(x))


torch.manual_seed(0)
data = torch.randn(640, 20)
target = (data[:, :4].sum(1, keepdim=True) > 0).float()
loader = DataLoader(TensorDataset(data, target), batch_size=32, shuffle=True)
net, criterion = Net(20), nn.BCELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(5):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
