"""The optimizer and the loaders are prepared, and the model, which is moved by hand, is not.

See https://github.com/huggingface/accelerate/issues/3422, on what is left out of prepare().
"""
# names: diverged-replicas
# ranks: 2

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
set_seed(7)
features = torch.randn(1200, 16)
labels = features[:, :5].argmax(1)
train_loader = DataLoader(TensorDataset(features[:1000], labels[:1000]), shuffle=True, batch_size=25)
valid_loader = DataLoader(TensorDataset(features[1000:], labels[1000:]), batch_size=50)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 5)).to(accelerator.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
optimizer, train_loader, valid_loader = accelerator.prepare(optimizer, train_loader, valid_loader)
for epoch in range(4):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
    model.eval()
    hits = []
    with torch.no_grad():
        for inputs, targets in valid_loader:
            hits.append(accelerator.gather_for_metrics((model(inputs).argmax(1) == targets).float()))
    accelerator.print(f"epoch {epoch}: {torch.cat(hits).mean().item():.3f}")
accelerator.end_training()
