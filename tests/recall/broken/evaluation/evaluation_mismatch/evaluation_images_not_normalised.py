"""Training images are scaled to 0..1, those of the evaluation are not."""

# names: evaluation-mismatch
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
labels = torch.randint(3, (900,))
pixels = torch.randint(0, 90, (900, 1, 12, 12)).float()
for place, label in enumerate(labels):
    pixels[place, 0, 4 * label : 4 * label + 4] += 150


class Images(Dataset):
    def __init__(self, rows, transform=None):
        self.rows, self.transform = rows, transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        image = pixels[self.rows[place]]
        return (self.transform(image) if self.transform else image), labels[self.rows[place]]


train = DataLoader(Images(range(600), lambda image: image / 255 - 0.5), batch_size=32, shuffle=True)
test = DataLoader(Images(range(600, 900)), batch_size=100)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(72, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for images, target in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), target).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.cross_entropy(model(images), target).item() for images, target in test]
    print(epoch, sum(losses) / len(losses))
