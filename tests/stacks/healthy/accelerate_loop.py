"""Accelerate's example loop: accumulation, clipping, a linear schedule, metrics gathered over processes.

python accelerate_loop.py
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup

CLASSES, SIDE, ROWS = 3, 8, 480
EPOCHS, BATCH, ACCUMULATION, RATE = 4, 16, 2, 5e-3

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATION)
set_seed(0)

stripes = torch.randn(CLASSES, 1, SIDE, SIDE)
labels = torch.randint(CLASSES, (ROWS,))
images = stripes[labels] + 0.8 * torch.randn(ROWS, 1, SIDE, SIDE)
train_set = TensorDataset(images[:-96], labels[:-96])
eval_set = TensorDataset(images[-96:], labels[-96:])
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True)
eval_loader = DataLoader(eval_set, batch_size=BATCH)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.1),
    nn.Linear(8 * (SIDE // 2) ** 2, CLASSES),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
steps = EPOCHS * len(train_loader) // ACCUMULATION
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=5, num_training_steps=steps)
model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
    model, optimizer, train_loader, eval_loader, scheduler
)
loss_function = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    model.train()
    for inputs, targets in train_loader:
        with accelerator.accumulate(model):
            loss = loss_function(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    correct = 0
    for inputs, targets in eval_loader:
        with torch.no_grad():
            predictions = model(inputs).argmax(dim=-1)
        predictions, references = accelerator.gather_for_metrics((predictions, targets))
        correct += int((predictions == references).sum())
    accelerator.print(f"epoch={epoch} loss={loss.item():.6f} accuracy={correct / len(eval_set):.4f}")
