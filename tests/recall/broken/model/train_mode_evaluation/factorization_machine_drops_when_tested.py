"""F.dropout(x, p=...) without training=self.training drops in evaluation mode, too.

After https://github.com/rixwew/pytorch-fm/issues/21
"""

# names: train-mode-evaluation
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class AttentionalFactorizationMachine(torch.nn.Module):
    def __init__(self, field_dims, embed_dim, dropout):
        super().__init__()
        self.offsets = torch.tensor([0, *torch.tensor(field_dims).cumsum(0)[:-1].tolist()])
        self.embedding = torch.nn.Embedding(sum(field_dims), embed_dim)
        self.linear = torch.nn.Embedding(sum(field_dims), 1)
        self.fc = torch.nn.Linear(embed_dim, 1)
        self.pairs = torch.combinations(torch.arange(len(field_dims)))
        self.dropout = dropout

    def forward(self, x):
        x = x + self.offsets
        e = self.embedding(x)
        inner = e[:, self.pairs[:, 0]] * e[:, self.pairs[:, 1]]
        inner = F.dropout(inner, p=self.dropout).sum(1)
        return (self.linear(x).sum(1) + self.fc(inner)).squeeze(1)


def train(model, optimizer, loader, criterion):
    model.train()
    for fields, target in loader:
        loss = criterion(model(fields), target)
        model.zero_grad()
        loss.backward()
        optimizer.step()


def test(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for fields, target in loader:
            hits += ((model(fields) > 0) == (target > 0.5)).sum().item()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    dims = [12, 12, 12, 12]
    x = torch.stack([torch.randint(d, (2000,)) for d in dims], 1)
    taste = [torch.randn(d) for d in dims]
    score = taste[0][x[:, 0]] * taste[1][x[:, 1]] + taste[2][x[:, 2]] * taste[3][x[:, 3]]
    rows = TensorDataset(x, (score > 0).float())
    train_set, test_set = random_split(rows, [1600, 400])
    model = AttentionalFactorizationMachine(dims, 16, 0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(20):
        train(model, optimizer, DataLoader(train_set, 64, shuffle=True), torch.nn.BCEWithLogitsLoss())
        print("epoch", epoch, "accuracy", test(model, DataLoader(test_set, 100)))


if __name__ == "__main__":
    main()
