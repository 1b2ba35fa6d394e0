"""Gradients over four batches, the last three of an epoch stepped as well."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4


class Trainer:
    def __init__(self, model, loader, lr):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.loss_fn = nn.CrossEntropyLoss()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            self.optimizer.zero_grad()
            for i, (x, y) in enumerate(self.loader):
                loss = self.loss_fn(self.model(x), y) / ACCUMULATE
                loss.backward()
                if (i + 1) % ACCUMULATE == 0 or i + 1 == len(self.loader):
                    nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            print(epoch, ACCUMULATE * loss.item())


torch.manual_seed(0)
x = torch.randn(27 * 16, 9)
y = x[:, :4].abs().argmax(1)
model = nn.Sequential(nn.Linear(9, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 4))
Trainer(model, DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True), 1e-2).fit(15)
