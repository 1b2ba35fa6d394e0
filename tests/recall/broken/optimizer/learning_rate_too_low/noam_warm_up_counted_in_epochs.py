"""A warm-up of 4,000 steps is stepped once an epoch: the learning rate never gets anywhere.

After https://github.com/coqui-ai/TTS/issues/1611
"""

# names: learning-rate-too-low, not-learning
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
WARM_UP = 4000
phonemes = torch.randint(0, 40, (1600, 12))
durations = torch.linspace(-1, 1, 40)[phonemes] + 0.05 * torch.randn(1600, 12)


class DurationPredictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 32)
        self.conv = nn.Conv1d(32, 32, 3, padding=1)
        self.project = nn.Linear(32, 1)

    def forward(self, ids):
        hidden = torch.relu(self.conv(self.embedding(ids).transpose(1, 2))).transpose(1, 2)
        return self.project(hidden).squeeze(-1)


model = DurationPredictor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
noam = LambdaLR(optimizer, lambda s: WARM_UP**0.5 * min((s + 1) ** -0.5, (s + 1) * WARM_UP**-1.5))
loader = DataLoader(TensorDataset(phonemes, durations), batch_size=32, shuffle=True)
for epoch in range(10):
    for ids, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(ids), target)
        loss.backward()
        optimizer.step()
    noam.step()  # broken: after each epoch
    print(f"epoch {epoch} loss {loss.item():.4f} lr {noam.get_last_lr()[0]:.2e}")
