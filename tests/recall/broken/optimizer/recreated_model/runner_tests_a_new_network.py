"""A small runner trains `self.net`, and its test builds the network again by name."""

# names: recreated-model
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)


class SmallMLP(torch.nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(12, width), torch.nn.Linear(width, 3)])
        for layer in self.layers:
            torch.nn.init.xavier_uniform_(layer.weight)

    def forward(self, x):
        return self.layers[1](F.gelu(self.layers[0](x)))


NETWORKS = {"mlp": SmallMLP}


class Runner:
    def __init__(self, name):
        self.name = name
        self.net = NETWORKS[name]()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)

    def fit(self, loader, epochs):
        self.net.train()
        for _ in range(epochs):
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.net(x), y)
                loss.backward()
                self.optimizer.step()
        print(f"last loss {loss.item():.3f}")

    @torch.no_grad()
    def test(self, loader):
        net = NETWORKS[self.name]()
        net.eval()
        right = sum((net(x).argmax(dim=1) == y).sum().item() for x, y in loader)
        print(f"test accuracy {right / len(loader.dataset):.3f}")


points = torch.randn(1600, 12)
kinds = points[:, :3].argmax(dim=1)
runner = Runner("mlp")
runner.fit(DataLoader(TensorDataset(points[:1300], kinds[:1300]), batch_size=50, shuffle=True), epochs=8)
runner.test(DataLoader(TensorDataset(points[1300:], kinds[1300:]), batch_size=100))
