"""The linear schedule ends with the run."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup

torch.manual_seed(0)
features = torch.randn(6400, 24)
hidden_state = torch.tanh(features @ torch.randn(24, 24) / 3) @ torch.randn(24, 8)
loader = DataLoader(TensorDataset(features, hidden_state), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(24, 64), nn.SiLU(), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
total_steps = 10 * len(loader)
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=10, num_training_steps=total_steps)
criterion = nn.SmoothL1Loss()
for epoch in range(10):
    running = 0.0
    for step, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        running += loss.item()
    print(f"Epoch [{epoch + 1}/10], Loss: {running / len(loader):.4f}")
