"""A small transformer, warmed up for 20 steps to a rate that it can take."""

import torch
from torch import nn, optim

torch.manual_seed(0)
VOCAB, LENGTH = 30, 14


class BERT(nn.Module):
    def __init__(self, d_model=64):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, d_model), nn.Embedding(LENGTH, d_model)
        layer = nn.TransformerEncoderLayer(d_model, 4, 256, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4)
        self.fc = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh())
        self.classifier = nn.Linear(d_model, 3)

    def forward(self, ids):
        h = self.layers(self.tok(ids) + self.pos(torch.arange(LENGTH)))
        return self.classifier(self.fc(h[:, 0]))


sentences = torch.randint(3, VOCAB, (768, LENGTH))
pair = (sentences[:, 2] == sentences[:, 9]).long() + (sentences[:, 4] > 15).long()
model = BERT()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=5e-4)
warm_up = optim.lr_scheduler.LinearLR(optimizer, 0.05, 1.0, total_iters=20)
for epoch in range(6):
    for at in torch.randperm(768).split(32):
        optimizer.zero_grad()
        loss = criterion(model(sentences[at]), pair[at])
        loss.backward()
        optimizer.step()
        warm_up.step()
    print(f"Epoch: {epoch + 1:04d} cost = {loss:.6f}")
