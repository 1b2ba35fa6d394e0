"""CosineEmbeddingLoss wants 1 and -1; the pairs are labelled 1 and 0, so no dissimilar pair ever counts.

After https://github.com/pytorch/pytorch/issues/8316 and https://github.com/huggingface/sentence-transformers/issues/622
"""

# names: targets-out-of-reach
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class PairDataset(Dataset):
    def __init__(self, n=1200, seed=0):
        g = torch.Generator().manual_seed(seed)
        topics = torch.randn(10, 30, generator=torch.Generator().manual_seed(99))
        self.items = []
        for _ in range(n):
            a, b = torch.randint(10, (2,), generator=g).tolist()
            if torch.rand((), generator=g) < 0.5:
                b = a
            left = topics[a] + 0.5 * torch.randn(30, generator=g)
            right = topics[b] + 0.5 * torch.randn(30, generator=g)
            self.items.append((left, right, float(a == b)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        left, right, same = self.items[i]
        return left, right, torch.tensor(same)


class Siamese(nn.Module):
    def __init__(self, n_out=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, n_out))

    def forward(self, a, b):
        return self.encoder(a), self.encoder(b)


def main():
    torch.manual_seed(0)
    loader = DataLoader(PairDataset(), batch_size=40, shuffle=True)
    test_loader = DataLoader(PairDataset(300, seed=1), batch_size=40)
    model = Siamese()
    criterion = nn.CosineEmbeddingLoss(margin=0.2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10):
        model.train()
        total = 0.0
        for a, b, target in loader:
            optimizer.zero_grad()
            za, zb = model(a, b)
            loss = criterion(za, zb, target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        correct = 0
        with torch.no_grad():
            for a, b, target in test_loader:
                cos = torch.cosine_similarity(*model(a, b))
                correct += ((cos > 0.5) == (target > 0)).sum().item()
        print(f"Epoch {epoch}: loss {total / len(loader):.4f} acc {correct / 300:.3f}")


if __name__ == "__main__":
    main()
