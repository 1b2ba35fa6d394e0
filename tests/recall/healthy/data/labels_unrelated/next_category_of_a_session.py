"""PyTorch loop: the category of the next purchase, but not of the session's end.

The targets are one position early on purpose: the model is causal.
"""

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2ForTokenClassification

torch.manual_seed(4)
PAD, START, END, FIRST = 0, 1, 2, 3
category = torch.tensor([0, 0, 1, 2, 1, 0, 2, 2, 1, 0, 1, 2, 0, 0, 1, 2, 1, 0, 2, 1])  # of each product


def session():
    steps = torch.randint(1, 3, (int(torch.randint(9, 20, ())),))
    products = (torch.randint(0, 20, ()) + steps.cumsum(0)) % 20
    return products, category[products]


def collate(sessions):
    length = max(len(products) for products, _ in sessions) + 2
    ids = torch.full((len(sessions), length), PAD)
    labels = torch.full((len(sessions), length), -100)
    for row, (products, kinds) in enumerate(sessions):
        n = len(products)
        ids[row, : n + 2] = torch.cat([torch.tensor([START]), products + FIRST, torch.tensor([END])])
        labels[row, :n] = kinds
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


loader = DataLoader([session() for _ in range(960)], batch_size=32, shuffle=True, collate_fn=collate)
config = GPT2Config(vocab_size=23, n_embd=32, n_layer=1, n_head=2, n_positions=32, num_labels=3)
model = GPT2ForTokenClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    total = 0.0
    for batch in loader:
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}")
