"""A VAE: binary cross entropy summed over pixels, plus the divergence; sampling also in training."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 40)
        self.mu, self.logvar = nn.Linear(40, 4), nn.Linear(40, 4)
        self.fc3, self.fc4 = nn.Linear(4, 40), nn.Linear(40, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def digits(n):
    strokes = (torch.rand(10, 8, 8, generator=torch.Generator().manual_seed(5)) > 0.6).float()
    kind = torch.randint(10, (n,))
    flip = (torch.rand(n, 8, 8) < 0.05).float()
    return (strokes[kind] - flip).abs().unsqueeze(1), kind


torch.manual_seed(1)
train_loader = DataLoader(TensorDataset(*digits(1500)), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset(*digits(300)), batch_size=50)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 11):
    model.train()
    train_loss = 0
    for data, _ in train_loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, _ in test_loader:
            test_loss += loss_function(*model(data)[:1], data, *model(data)[1:]).item()
    print(f"epoch {epoch} train {train_loss / 1500:.2f} test {test_loss / 300:.2f}")
