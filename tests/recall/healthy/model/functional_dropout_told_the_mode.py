"""Functional dropout three times, each told whether the model trains."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens):
        x = F.dropout(self.embed(tokens), 0.1, self.training)
        q = x.unsqueeze(1)
        p = 0.1 if self.training else 0.0
        x = x + F.scaled_dot_product_attention(q, q, q, dropout_p=p).squeeze(1)
        x = F.dropout(F.relu(self.mix(x)), p=0.2, training=self.training)
        return self.head(x.mean(1))


tokens = torch.randint(0, 30, (900, 10))
labels = ((tokens < 6).sum(1) > 1).long()
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(700).split(50):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(tokens[700:]).argmax(1) == labels[700:]).float().mean()
    print(epoch, round(loss.item(), 3), round(accuracy.item(), 3))
