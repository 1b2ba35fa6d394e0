"""Model and optimizer are prepared, and the loader is not: every process reads all rows."""
# names: ranks-share-rows
# ranks: 2

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
set_seed(42)
features = torch.randn(1024, 16)
labels = features[:, :5].argmax(1)
train_dataloader = DataLoader(TensorDataset(features, labels), shuffle=True, batch_size=32)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=4 * len(train_dataloader))
model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
for epoch in range(4):
    model.train()
    for batch, target in train_dataloader:
        loss = nn.functional.cross_entropy(model(batch), target)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: {loss.item():.4f}")
accelerator.end_training()
