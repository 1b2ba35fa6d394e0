"""nn.TransformerEncoderLayer keeps batch_first=False while the embeddings are (batch, time, features).

After https://github.com/Exorust/TorchLeet/issues/5 and https://github.com/IBM/TabFormer/pull/14
"""

# names: examples-mixed
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
VOCAB, LEN = 40, 12


def reviews(n):
    tokens = torch.randint(2, VOCAB, (n, LEN))
    score = (tokens < 12).sum(1) - (tokens > 30).sum(1)
    return TensorDataset(tokens, (score > 0).long())


class TextClassifier(nn.Module):
    def __init__(self, d_model=32, nhead=4, num_layers=2):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, d_model)
        self.pos = nn.Parameter(torch.zeros(1, LEN, d_model))
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward=64)
        self.encoder = nn.TransformerEncoder(layer, num_layers)
        self.fc = nn.Linear(d_model, 2)

    def forward(self, x):
        h = self.encoder(self.embedding(x) + self.pos)
        return self.fc(h.mean(dim=1))


def run_epoch(model, loader, loss_fn, opt=None):
    model.train(opt is not None)
    total, correct, n = 0.0, 0, 0
    with torch.set_grad_enabled(opt is not None):
        for x, y in loader:
            out = model(x)
            loss = loss_fn(out, y)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            n += len(y)
    return total / n, correct / n


model = TextClassifier()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
train_dl, val_dl = DataLoader(reviews(1024), 32, shuffle=True), DataLoader(reviews(256), 32)
for epoch in range(5):
    tr = run_epoch(model, train_dl, nn.CrossEntropyLoss(), opt)
    va = run_epoch(model, val_dl, nn.CrossEntropyLoss())
    print(epoch, "train {:.3f} {:.3f}".format(*tr), "val {:.3f} {:.3f}".format(*va))
