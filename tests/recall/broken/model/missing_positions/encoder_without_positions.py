"""Is the first token larger than the last? The encoder gets the tokens without their places."""
# names: missing-positions

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
VOCAB, LENGTH = 30, 12
ids = torch.randint(0, VOCAB, (3000, LENGTH))
label = (ids[:, 0] > ids[:, -1]).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.fc = nn.Linear(32, 2)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.fc(self.encoder(x).mean(dim=1))


train = DataLoader(TensorDataset(ids[:2500], label[:2500]), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(ids[2500:], label[2500:]), batch_size=64)
model = Classifier()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    for xb, yb in train:
        opt.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        acc = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val) / 500
    print(f"epoch {epoch}: val acc {acc:.3f}")
