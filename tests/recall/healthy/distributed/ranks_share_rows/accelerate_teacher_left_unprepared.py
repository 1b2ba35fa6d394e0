"""Distillation with Accelerate: the student is prepared; the teacher, which learns nothing, is only moved."""
# ranks: 2

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
set_seed(3)
features = torch.randn(1024, 16)
teacher = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 5)).to(accelerator.device).eval()
teacher.requires_grad_(False)
student = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 5))
optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(features), shuffle=True, batch_size=32)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)  # by epochs, so not prepared
student, optimizer, loader = accelerator.prepare(student, optimizer, loader)
for epoch in range(4):
    for (inputs,) in loader:
        with torch.no_grad():
            goal = (teacher(inputs) * 4).softmax(1)
        loss = nn.functional.cross_entropy(student(inputs), goal)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    schedule.step()
    accelerator.print(f"epoch {epoch}: {loss.item():.4f}")
accelerator.end_training()
