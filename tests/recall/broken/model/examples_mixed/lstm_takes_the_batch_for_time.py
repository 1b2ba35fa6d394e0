"""An LSTM without batch_first gets (batch, time, features): it runs along the batch."""

# names: examples-mixed
import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, series):
        states, _ = self.lstm(series)
        return self.head(states[:, -1])


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
series = torch.randn(512, 12, 6)
labels = (series.mean(dim=1)[:, 0] > 0).long()
for step in range(300):
    rows = torch.randint(512, (32,))
    loss = nn.functional.cross_entropy(model(series[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
