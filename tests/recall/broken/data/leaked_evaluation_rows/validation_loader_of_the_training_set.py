"""The validation loader is made of the training set: the network looks perfect and knows nothing.

After https://github.com/JJGO/shrinkbench/pull/7
"""

# names: leaked-evaluation-rows
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 4, (count,), generator=g)
        self.x = torch.randn(count, 1, 10, 10, generator=g)
        for i, y in enumerate(self.y.tolist()):
            self.x[i, 0, 2 * y : 2 * y + 2] += 0.35

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class TrainingExperiment:
    def __init__(self, batch_size=32, epochs=25):
        self.epochs = epochs
        self.train_dataset = Shapes(320, 1)
        self.val_dataset = Shapes(320, 2)
        self.train_dl = DataLoader(self.train_dataset, batch_size=batch_size, shuffle=True)
        self.val_dl = DataLoader(self.train_dataset, batch_size=batch_size)
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(100, 256), nn.ReLU(), nn.Linear(256, 4))
        self.optim = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.loss_func = nn.CrossEntropyLoss()

    def run_epoch(self, train):
        self.model.train(train)
        loader = self.train_dl if train else self.val_dl
        hits = 0
        with torch.set_grad_enabled(train):
            for x, y in loader:
                yhat = self.model(x)
                loss = self.loss_func(yhat, y)
                hits += (yhat.argmax(1) == y).sum().item()
                if train:
                    self.optim.zero_grad()
                    loss.backward()
                    self.optim.step()
        return hits / len(loader.dataset)

    def run(self):
        for epoch in range(self.epochs):
            print(f"epoch {epoch} train {self.run_epoch(True):.3f} val {self.run_epoch(False):.3f}")


TrainingExperiment().run()
