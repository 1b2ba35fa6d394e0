"""The KL term of a VAE is subtracted a second time: the loss keeps falling while the latent code explodes.

After https://github.com/wiseodd/generative-models/issues/43
"""

# names: loss-divergence, loss-out-of-range
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc21, self.fc22 = nn.Linear(64, 4), nn.Linear(64, 4)
        self.fc3, self.fc4 = nn.Linear(4, 64), nn.Linear(64, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x, reduction="sum")
    kld = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


kinds = (torch.rand(10, 64) > 0.5).float()
images = (kinds[torch.randint(10, (1500,))] * 0.8 + 0.1 * torch.rand(1500, 64)).clamp(0, 1)
loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def train(epoch):
    model.train()
    train_loss = 0
    for (data,) in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(loader.dataset):.4f}")


for epoch in range(1, 9):
    train(epoch)
