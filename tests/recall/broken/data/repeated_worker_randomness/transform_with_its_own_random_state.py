"""A transform made once holds np.random.RandomState; four workers crop and flip alike."""

# names: repeated-worker-randomness
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class RandomFlipAndShift:
    def __init__(self, p=0.5, seed=42):
        self.p = p
        self.random_state = np.random.RandomState(seed)

    def __call__(self, img):
        if self.random_state.rand() < self.p:
            img = img[:, ::-1]
        return np.roll(img, self.random_state.randint(-1, 2), axis=0).copy()


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img


class Bars(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images, self.labels, self.transform = images, labels, transform

    def __getitem__(self, idx):
        img = self.images[idx]
        if self.transform is not None:
            img = self.transform(img)
        return torch.from_numpy(img).unsqueeze(0), self.labels[idx]

    def __len__(self):
        return len(self.images)


def main():
    torch.manual_seed(0)
    rng = np.random.RandomState(0)
    labels = rng.randint(0, 2, 400)
    images = rng.rand(400, 10, 10).astype(np.float32)
    images[labels == 1, 2:5] += 1
    images[labels == 0, :, 4:6] += 1
    data = Bars(images, labels, Compose([RandomFlipAndShift()]))
    loader = DataLoader(data, batch_size=40, shuffle=True, num_workers=4, persistent_workers=True)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(3):
        for x, y in loader:
            x = x.float() - 0.5
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
        print(epoch, round(loss.item(), 4))


if __name__ == "__main__":
    main()
