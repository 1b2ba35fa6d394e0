"""A warm-up that begins at 0 is made, and scheduler.step() was lost in a refactoring: the rate stays 0."""

# names: unchanged-parameters, collapsed-schedule, learning-rate-too-low
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x = torch.randn(1200, 12)
y = ((x[:, :4].sum(1) > 0) ^ (x[:, 4] > 0.5)).long()


def get_linear_schedule(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return step / max(1, warmup)
        return max(0.0, (total - step) / max(1, total - warmup))

    return LambdaLR(optimizer, factor)


class Runner:
    def __init__(self, model, loader, epochs):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        self.scheduler = get_linear_schedule(self.optimizer, 20, epochs * len(loader))
        self.loss = nn.CrossEntropyLoss()

    def train_step(self, batch):
        inputs, labels = batch
        loss = self.loss(self.model(inputs), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self):
        for epoch in range(self.epochs):
            losses = [self.train_step(batch) for batch in self.loader]
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")


net = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 2))
Runner(net, DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True), epochs=6).run()
