"""The warm-up is given in epochs of the full data set; the subset that is trained on ends long before it.

After https://github.com/deepset-ai/FARM/issues/46
"""

# names: learning-rate-too-low, not-learning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_cosine_schedule_with_warmup

torch.manual_seed(0)
FULL = 2_000_000  # rows of the full data set
EPOCHS, BATCH = 2, 32
x = torch.randn(3200, 16)
y = (x[:, :4].sum(1) > 0).long() + (x[:, 4] > 1).long()
loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 3))
nn.init.zeros_(model[-1].weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = get_cosine_schedule_with_warmup(optimizer, FULL // BATCH, EPOCHS * FULL // BATCH)
for epoch in range(EPOCHS):
    for step, (xb, yb) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            print(f"epoch {epoch} step {step} lr {scheduler.get_last_lr()[0]:.2e} loss {loss.item():.4f}")
