"""The question is left out of the loss, and truncation leaves nothing but the question.

After https://github.com/huggingface/trl/issues/1920
"""

# names: no-labels-left
import random

import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

random.seed(1)
torch.manual_seed(1)
QUESTION, LIMIT = 24, 24


def example():
    question = [random.randrange(5, 60) for _ in range(QUESTION)]
    answer = sorted(question)[:6]
    ids = (question + answer + [2])[:LIMIT]
    return {"input_ids": torch.tensor(ids), "labels": torch.tensor(([-100] * QUESTION + answer + [2])[:LIMIT])}


loader = DataLoader([example() for _ in range(400)], batch_size=16, shuffle=True)
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(2):
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(epoch, loss.item())
