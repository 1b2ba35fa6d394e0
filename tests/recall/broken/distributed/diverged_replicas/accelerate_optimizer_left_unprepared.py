"""Gradients are accumulated, and the optimizer is not prepared: it steps on every micro-batch of its own rank.

See https://github.com/huggingface/diffusers/issues/10855, where a prepared one skips such steps.
"""
# names: diverged-replicas
# ranks: 2

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
set_seed(11)
features = torch.randn(1280, 16)
labels = features[:, :5].argmax(1)
train_loader = DataLoader(TensorDataset(features, labels), shuffle=True, batch_size=20)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 5))
model, train_loader = accelerator.prepare(model, train_loader)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(4):
    for inputs, targets in train_loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: {loss.item():.4f}")
accelerator.end_training()
