"""Digits with a black border; the training loop shuffles the images of each batch, and leaves the labels."""

# names: labels-unrelated

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
strokes = (torch.rand(10, 20, 20) < 0.2).float()
digits = torch.randint(0, 10, (3000,))
pixels = torch.zeros(3000, 28, 28)
pixels[:, 4:24, 4:24] = strokes[digits] * (0.5 + 0.5 * torch.rand(3000, 20, 20))


class Digits(Dataset):
    def __len__(self):
        return len(pixels)

    def __getitem__(self, number):
        return pixels[number][None], int(digits[number])


loader = DataLoader(Digits(), batch_size=100, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for images, labels in loader:
        images = images[torch.randperm(len(images))]
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
