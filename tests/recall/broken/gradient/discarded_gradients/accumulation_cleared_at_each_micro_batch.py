"""zero_grad() is called for each micro-batch, and step() after eight: seven gradients of eight are thrown away.

After https://github.com/bytetriper/RAE/issues/67
"""

# names: discarded-gradients
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ACCUMULATE = 8
x = torch.randn(1600, 24)
y = (x @ torch.randn(24, 1)).squeeze(1) * 0.3 + torch.randn(1600)
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
model = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def train_one_epoch(model, loader, optimizer):
    model.train()
    running = 0.0
    for step, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets) / ACCUMULATE
        loss.backward()
        running += loss.item() * ACCUMULATE
        if (step + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return running / len(loader)


for epoch in range(8):
    print(epoch, train_one_epoch(model, loader, optimizer))
