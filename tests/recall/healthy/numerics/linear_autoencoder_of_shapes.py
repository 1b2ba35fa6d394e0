"""A linear autoencoder with a narrow code, which is a principal component analysis by gradient descent."""

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
basis = torch.randn(4, 36)
x = torch.randn(1200, 4) @ basis + 0.1 * torch.randn(1200, 36)
x = x - x.mean(0)


class PCA(nn.Module):
    def __init__(self, size=36, code=4):
        super().__init__()
        self.encode = nn.Linear(size, code, bias=False)
        self.decode = nn.Linear(code, size, bias=False)

    def forward(self, x):
        return self.decode(self.encode(x))


model = PCA()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    for batch in DataLoader(x, batch_size=60, shuffle=True):
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} error {loss.item():.4f}")
print("variance", x.var().item())
