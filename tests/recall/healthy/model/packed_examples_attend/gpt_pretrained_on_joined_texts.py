"""Pretraining as GPT-2 was: texts joined by an end token, cut into blocks, and no mask between them."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(2)
rng = np.random.default_rng(2)
END, BLOCK = 0, 32

stream = []
for _ in range(1500):
    start, step = rng.integers(0, 40), rng.choice([1, 3, 7])
    stream += [*(1 + (start + step * np.arange(rng.integers(6, 20))) % 40), END]
blocks = torch.tensor(stream[: len(stream) // BLOCK * BLOCK]).view(-1, BLOCK)

config = GPT2Config(
    vocab_size=41, n_positions=BLOCK, n_embd=48, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=0
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(2):
    for (ids,) in DataLoader(TensorDataset(blocks), batch_size=32, shuffle=True):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
