"""A GRU predicts tomorrow's ridership from two weeks; eight small batches make one step."""

# names: collapsed-schedule

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE, EPOCHS = 8, 12

torch.manual_seed(3)
days = torch.arange(1200.0)
riders = torch.sin(2 * torch.pi * days / 7) + 0.3 * torch.sin(2 * torch.pi * days / 30) + 0.1 * torch.randn(1200)
weeks = riders.unfold(0, 15, 1)
train = TensorDataset(weeks[:960, :14, None], weeks[:960, 14:])
loader = DataLoader(train, batch_size=8, shuffle=True)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, window):
        return self.out(self.memory(window)[0][:, -1])


model = Forecast()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
steps = EPOCHS * len(loader) // ACCUMULATE
decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
for epoch in range(EPOCHS):
    for number, (window, target) in enumerate(loader, start=1):
        loss = nn.functional.mse_loss(model(window), target)
        (loss / ACCUMULATE).backward()
        if number % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
        decay.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
