"""A stateful GRU whose state is carried from batch to batch without detach."""

# names: graph-misuse
import torch
from torch import nn

torch.manual_seed(0)
signal = torch.sin(torch.arange(3000) / 9) + 0.1 * torch.randn(3000)


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x, h):
        out, h = self.gru(x, h)
        return self.head(out), h


model = Predictor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
hidden = torch.zeros(1, 1, 24)
for start in range(0, 2900, 50):
    x = signal[start : start + 50].view(1, -1, 1)
    y = signal[start + 1 : start + 51].view(1, -1, 1)
    output, hidden = model(x, hidden)
    loss = nn.functional.mse_loss(output, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(start, loss.item())
