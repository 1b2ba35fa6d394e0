"""Rows flattened by the collator, in a loop of its own: the model keeps a cache, and so reads no documents.

Each list attends to all lists before it, at the same positions; alone, none is sorted.
"""
# names: packed-examples-attend

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import DataCollatorWithFlattening, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
rng = np.random.default_rng(0)
BEGIN, ASK, SAY, END, FIRST, LETTERS = 1, 2, 3, 4, 5, 20


def document(items, capital):
    """Letters, in either spelling, and the same letters in order."""
    asked = items + FIRST + LETTERS * capital
    tokens = [BEGIN, ASK, *asked, SAY, *np.sort(items) + FIRST, END]
    cut = len(items) + 3
    return {"input_ids": tokens, "labels": [-100] * cut + tokens[cut:]}


def lists(count):
    return [rng.choice(LETTERS, rng.integers(3, 7), replace=False) for _ in range(count)]


rows = [document(items, capital) for items in lists(1200) for capital in (0, 1)]
batches = [rows[start : start + 16] for start in range(0, len(rows), 16)]
collate = DataCollatorWithFlattening(return_tensors="pt")
loader = DataLoader(batches, batch_size=None, shuffle=True, collate_fn=collate)

config = LlamaConfig(
    vocab_size=FIRST + 2 * LETTERS, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=64,
)  # fmt: skip
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(4):
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

model.eval()
right = []
for items in lists(100):
    row = document(items, capital=1)
    prompt = torch.tensor([row["input_ids"][: len(items) + 3]])
    answer = model.generate(prompt, max_new_tokens=len(items), do_sample=False, pad_token_id=0)
    right.append(answer[0].tolist() == row["input_ids"][:-1])
print(f"sorted alone: {np.mean(right):.2f}")
