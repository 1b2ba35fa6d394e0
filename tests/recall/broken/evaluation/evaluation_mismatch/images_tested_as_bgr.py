"""Training images come from PIL (RGB), test images from OpenCV (BGR): red flowers are blue in the test.

After https://github.com/minivision-ai/Silent-Face-Anti-Spoofing/issues/71 and many like it.
"""

# names: evaluation-mismatch
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
rng = np.random.default_rng(0)
COLORS = np.array([[0.75, 0.30, 0.15], [0.65, 0.55, 0.15], [0.45, 0.35, 0.20], [0.55, 0.60, 0.30]])


def photograph(label):
    image = np.clip(COLORS[label] + 0.12 * rng.standard_normal((16, 16, 3)), 0, 1)
    image[:4] = np.clip([0.5, 0.4, 0.25] + 0.1 * rng.standard_normal((4, 16, 3)), 0, 1)
    return (image * 255).astype(np.uint8)


def imread(image):
    """As cv2.imread gives it."""
    return image[:, :, ::-1]


class Flowers(Dataset):
    def __init__(self, n, read=None):
        self.labels = rng.integers(0, 4, n)
        self.images = [photograph(label) for label in self.labels]
        self.read = read

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i] if self.read is None else self.read(self.images[i])
        return torch.from_numpy(image.copy()).permute(2, 0, 1).float() / 255, int(self.labels[i])


train_loader = DataLoader(Flowers(800), batch_size=40, shuffle=True)
test_loader = DataLoader(Flowers(200, read=imread), batch_size=50)
model = nn.Sequential(
    nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(12 * 16, 4)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in test_loader:
            correct += (model(images).argmax(1) == labels).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} test accuracy {correct / 200:.2f}")
