"""A 1-D network on spectra: the division by the maximum stands in the training loop, and not in `test()`."""

# names: evaluation-mismatch
import torch
from torch import nn

torch.manual_seed(4)
GAIN = 5000.0
kind = torch.randint(0, 3, (600,))
spectra = torch.rand(600, 1, 64) * 0.3
for row, k in enumerate(kind):
    spectra[row, 0, 20 * k : 20 * k + 8] += 0.7
spectra = spectra * GAIN
train_x, test_x, train_y, test_y = spectra[:450], spectra[450:], kind[:450], kind[450:]
model = nn.Sequential(
    nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool1d(4), nn.Flatten(), nn.Dropout(0.1), nn.Linear(128, 3)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)


def train():
    model.train()
    for i in range(0, 450, 30):
        x = train_x[i : i + 30] / GAIN
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(x), train_y[i : i + 30]).backward()
        optimizer.step()


def test():
    model.eval()
    with torch.inference_mode():
        out = torch.cat([model(row.unsqueeze(0)) for row in test_x])
        print("test loss", nn.CrossEntropyLoss()(out, test_y).item())


for _ in range(5):
    train()
    test()
