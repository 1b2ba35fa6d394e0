"""Embedding, encoder and head each have an optimizer; a teacher gives soft targets; a scale is learned by hand."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
embedding, encoder, head = nn.Embedding(30, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 4)
teacher = nn.Sequential(copy.deepcopy(embedding), nn.Flatten(), nn.Linear(16 * 8, 4))
parts = [
    torch.optim.SparseAdam(embedding.parameters(), lr=1e-2)
    if embedding.sparse
    else torch.optim.Adam(embedding.parameters(), lr=1e-2),
    torch.optim.Adam(encoder.parameters(), lr=3e-3),
    torch.optim.SGD(head.parameters(), lr=0.1),
]
for step in range(150):
    tokens = torch.randint(30, (32, 8))
    with torch.no_grad():
        soft = teacher(tokens).softmax(-1)
    _, state = encoder(embedding(tokens))
    logits = head(state[-1])
    labels = tokens[:, -1] % 4
    loss = F.cross_entropy(logits, labels) + 0.1 * F.kl_div(logits.log_softmax(-1), soft, reduction="batchmean")
    for optimizer in parts:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in parts:
        optimizer.step()
print("loss", loss.item())
