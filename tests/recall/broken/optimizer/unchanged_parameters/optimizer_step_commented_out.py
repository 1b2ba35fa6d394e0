"""optimizer.step() was commented out while debugging; the scheduler still steps."""

# names: unchanged-parameters
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(800, 1, 20)
y = (x[:, 0, :10].sum(1) > x[:, 0, 10:].sum(1)).long()
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Flatten(), nn.Linear(160, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(10):
    correct = 0
    for inputs, targets in loader:
        outputs = model(inputs)
        loss = loss_fn(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        # optimizer.step()
        correct += (outputs.argmax(1) == targets).sum().item()
    scheduler.step()
    print(f"epoch {epoch + 1}/10 loss {loss.item():.4f} acc {correct / len(x):.3f}")
