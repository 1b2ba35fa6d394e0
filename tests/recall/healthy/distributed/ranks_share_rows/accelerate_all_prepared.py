"""Accelerate with model, optimizer, loaders and schedule prepared."""
# ranks: 2

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
set_seed(42)
features = torch.randn(1300, 16)
labels = features[:, :5].argmax(1)
dataset = TensorDataset(features, labels)
train, val = random_split(dataset, [1100, 200], generator=torch.Generator().manual_seed(1))
train_loader, val_loader = DataLoader(train, shuffle=True, batch_size=24), DataLoader(val, batch_size=24)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
for epoch in range(4):
    model.train()
    for batch, target in train_loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(batch), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    hits = []
    for batch, target in val_loader:
        with torch.no_grad():
            answers = model(batch).argmax(1)
        hits.append(accelerator.gather_for_metrics((answers == target).float()))
    accelerator.print(f"epoch {epoch}: {torch.cat(hits).mean().item():.3f}")
accelerator.end_training()
