"""The loss is scaled by a GradScaler and optimizer.step() is called directly: gradients are far too large."""

# names: mixed-precision-misuse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = torch.randn(5, 20)
y = torch.randint(5, (1500,))
x = centres[y] + torch.randn(1500, 20)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)


class Engine:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu")
        self.criterion = nn.CrossEntropyLoss()

    def step(self, inputs, targets):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs = self.model(inputs)
            loss = self.criterion(outputs, targets)
        self.scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1e4)
        self.optimizer.step()
        return loss.item()


engine = Engine()
for epoch in range(5):
    losses = [engine.step(*batch) for batch in loader]
    print(epoch, sum(losses) / len(losses))
