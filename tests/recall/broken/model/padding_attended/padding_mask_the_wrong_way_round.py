"""src_key_padding_mask is True where there is a word, as in Hugging Face; PyTorch masks what is True.

After https://github.com/facebookresearch/detr/issues/96
"""

# names: padding-attended
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
N, L = 800, 16
lengths = torch.randint(4, 13, (N,))
tokens = torch.randint(3, 60, (N, L))
labels = torch.randint(0, 3, (N,))
where = (torch.rand(N) * lengths).long()
tokens[torch.arange(N), where] = labels
tokens += 1
tokens[torch.arange(L)[None] >= lengths[:, None]] = 0


class Encoder(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(62, d, padding_idx=0)
        self.pos = nn.Parameter(torch.randn(1, L, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(d, 3)

    def forward(self, ids):
        mask = ids != 0
        h = self.encoder(self.emb(ids) + self.pos, src_key_padding_mask=mask)
        return self.head(h[:, 0])


class Trainer:
    def __init__(self, model, loader, lr=1e-3):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.loss_fn = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        running = 0
        for ids, y in self.loader:
            self.optimizer.zero_grad()
            loss = self.loss_fn(self.model(ids), y)
            loss.backward()
            self.optimizer.step()
            running += loss.item()
        return running / len(self.loader)


trainer = Trainer(Encoder(), DataLoader(TensorDataset(tokens, labels), batch_size=32, shuffle=True))
for e in range(8):
    print(e, trainer.train_epoch())
