"""Masked words in pairs of sentences, told apart by token types: a word of one is found in the other."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(4)
rng = np.random.default_rng(4)
START, SEPARATOR, MASK, WORDS = 1, 2, 3, 40


def pair():
    """A sentence and the same words in reverse."""
    words = rng.choice(WORDS, rng.integers(5, 9), replace=False) + 4
    ids = [START, *words, SEPARATOR, *words[::-1], SEPARATOR]
    types = [0] * (len(words) + 2) + [1] * (len(words) + 1)
    rest = 20 - len(ids)
    return ids + [0] * rest, types + [0] * rest, [1] * len(ids) + [0] * rest


ids, types, mask = (torch.tensor(part) for part in zip(*(pair() for _ in range(1600))))
hidden = (torch.rand(ids.shape) < 0.15) & (ids > MASK)
labels = ids.masked_fill(~hidden, -100)
ids = ids.masked_fill(hidden, MASK)

model = BertForMaskedLM(
    BertConfig(
        vocab_size=WORDS + 4,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=96,
        max_position_embeddings=20,
        pad_token_id=0,
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(10):
    for ids_, types_, mask_, labels_ in DataLoader(
        TensorDataset(ids, types, mask, labels), batch_size=32, shuffle=True
    ):
        loss = model(input_ids=ids_, token_type_ids=types_, attention_mask=mask_, labels=labels_).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
