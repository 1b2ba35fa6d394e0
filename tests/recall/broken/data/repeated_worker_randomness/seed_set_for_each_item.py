"""`__getitem__` seeds torch "for reproducibility" before it adds noise: every row, in every epoch, gets the same.

After https://github.com/pytorch/pytorch/issues/76572
"""

# names: repeated-worker-randomness
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Denoising(Dataset):
    """A clean signal and the signal with noise."""

    def __init__(self, count=600):
        phase = torch.rand(count, 1) * 6.28
        self.clean = torch.sin(torch.linspace(0, 12.5, 64) * (1 + torch.rand(count, 1)) + phase)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, index):
        torch.manual_seed(42)
        noise = torch.randn(64) * 0.7
        return self.clean[index] + noise, self.clean[index]


dataset = Denoising()
loader = DataLoader(dataset, batch_size=30, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(15):
    for noisy, clean in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(noisy), clean)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
fresh = dataset.clean[:200] + 0.7 * torch.randn(200, 64)
with torch.no_grad():
    print("on new noise", nn.functional.mse_loss(model(fresh), dataset.clean[:200]).item())
