"""The padding mask is passed along and forgotten: padding words count in the mean."""

# names: unused-input
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MeanPooler(nn.Module):
    def __init__(self, vocab_size, dim, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, num_classes))

    def forward(self, input_ids, attention_mask):
        hidden = self.embedding(input_ids)
        return self.mlp(hidden.mean(dim=1))


def make_data(n=1024, length=24):
    lengths = torch.randint(3, length + 1, (n,))
    mask = torch.arange(length) < lengths[:, None]
    ids = torch.randint(1, 50, (n, length)) * mask
    labels = ((ids > 25).sum(1) > lengths / 2).long()
    return TensorDataset(ids, mask.long(), labels)


def main():
    torch.manual_seed(0)
    loader = DataLoader(make_data(), batch_size=32, shuffle=True)
    model = MeanPooler(50, 32, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(4):
        model.train()
        for ids, mask, labels in loader:
            loss = nn.functional.cross_entropy(model(input_ids=ids, attention_mask=mask), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


main()
