"""The reconstruction is averaged over pixels and batch, the KL term summed over both: the posterior collapses.

After https://github.com/zdebruine/MMVAE/pull/19
"""

# names: ignores-input, constant-predictions, not-learning
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader

torch.manual_seed(4)


def strokes(n, size=14):
    images = torch.zeros(n, size, size)
    for image in images:
        k = torch.randint(1, size - 2, ()).item()
        if torch.rand(()) < 0.5:
            image[k : k + 2] = 1.0
        else:
            image[:, k : k + 2] = 1.0
    return images.view(n, -1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(196, 100)
        self.fc21 = nn.Linear(100, 8)
        self.fc22 = nn.Linear(100, 8)
        self.fc3 = nn.Linear(8, 100)
        self.fc4 = nn.Linear(100, 196)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    recon = F.mse_loss(recon_x, x)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return recon + kld


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
train_loader = DataLoader(strokes(2000), batch_size=64, shuffle=True)
test_loader = DataLoader(strokes(300), batch_size=64)


def train(epoch):
    model.train()
    train_loss = 0
    for data in train_loader:
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.4f}")


def test():
    model.eval()
    error = 0
    with torch.no_grad():
        for data in test_loader:
            recon, _, _ = model(data)
            error += F.mse_loss(recon, data, reduction="sum").item()
    print(f"====> Test reconstruction: {error / 300:.4f}")


for epoch in range(1, 13):
    train(epoch)
    test()
