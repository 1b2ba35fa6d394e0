"""The augmentation returns the noise that it should add, so the network never sees an image."""

# names: not-learning
import torch
from torch import nn


class NoisyImages(torch.utils.data.Dataset):
    def __init__(self, count=800, train=True):
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.randint(0, 3, (count,), generator=generator)
        self.images = 0.3 * torch.randn(count, 1, 12, 12, generator=generator)
        for number, label in enumerate(self.labels):
            self.images[number, 0, 4 * label : 4 * label + 4] += 1.0
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.pool, self.fc = nn.MaxPool2d(2), nn.Linear(16 * 3 * 3, 3)

    def augment(self, x):
        noise = torch.randn_like(x) * 0.1
        return noise if self.training else x

    def forward(self, x):
        x = self.augment(x)
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(x.flatten(1))


torch.manual_seed(0)
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(NoisyImages(), batch_size=32, shuffle=True)
for epoch in range(6):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))
