"""A transform divides by 255 in place, and the data set hands out views of what it stores."""

# names: unstable-batch
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(2)


class Scale:
    def __call__(self, image):
        return image.div_(255)


class Letters(Dataset):
    def __init__(self, n, transform=None):
        self.targets = torch.randint(0, 5, (n,))
        self.data = torch.randint(0, 120, (n, 1, 10, 10)).float()
        for image, target in zip(self.data, self.targets):
            image[0, :, 2 * target : 2 * target + 2] += 120
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, target = self.data[index], self.targets[index]
        if self.transform is not None:
            image = self.transform(image)
        return image, target


train_loader = DataLoader(Letters(800, Scale()), batch_size=40, shuffle=True)
test_loader = DataLoader(Letters(200, Scale()), batch_size=50)
model = nn.Sequential(nn.Flatten(), nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    model.train()
    for images, targets in train_loader:
        loss = nn.functional.cross_entropy(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == t).sum().item() for x, t in test_loader)
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right / 200:.2f}")
