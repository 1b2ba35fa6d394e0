"""Will the visitor buy? A GRU over the pages of a visit, whose rare pages share the id of the padding."""

from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
rng = np.random.default_rng(2)
PAGES = ["home", "search", "product", "cart", "help", "reviews", "shipping", "returns", "login"]
often = np.array([5, 4, 4, 2, 1, 2, 1, 1, 1]) / 21


def visit():
    pages = rng.choice(PAGES, rng.integers(3, 12), p=often).tolist()
    return pages, float(pages.count("home") % 2 == 0 and "cart" in pages)


visits = [visit() for _ in range(2000)]
counts = Counter(page for pages, _ in visits for page in pages)
number = {page: index for index, (page, _) in enumerate(counts.most_common(7), start=1)}
ids = pad_sequence(
    [torch.tensor([number.get(page, 0) for page in pages]) for pages, _ in visits], batch_first=True
)
bought = torch.tensor([label for _, label in visits])


class Visitor(nn.Module):
    def __init__(self):
        super().__init__()
        self.pages = nn.Embedding(len(number) + 1, 16, padding_idx=0)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, ids):
        states, _ = self.gru(self.pages(ids))
        seen = (ids != 0).unsqueeze(-1)
        return self.head((states * seen).sum(1) / seen.sum(1).clamp(min=1)).squeeze(1)


loader = DataLoader(TensorDataset(ids[:1700], bought[:1700]), batch_size=50, shuffle=True)
model = Visitor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for rows, labels in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, ((model(ids[1700:]) > 0) == bought[1700:].bool()).float().mean().item())
