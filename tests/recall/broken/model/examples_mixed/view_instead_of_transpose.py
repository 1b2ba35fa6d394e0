"""A view where a transpose was meant mixes the rows of a batch."""

# names: examples-mixed
import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(10, 24)
        self.conv = nn.Conv1d(24, 24, 3, padding=1)
        self.head = nn.Linear(24, 3)

    def forward(self, frames):  # (time, batch, features)
        time, batch, _ = frames.shape
        hidden = self.project(frames).view(batch, 24, time)
        return self.head(self.conv(hidden).relu().mean(dim=2))


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(300):
    frames = torch.randn(8, 32, 10)
    labels = frames.mean(dim=0)[:, :3].argmax(dim=1)
    loss = nn.functional.cross_entropy(model(frames), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
