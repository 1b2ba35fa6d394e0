"""The question is left out of the loss, and a short answer counts."""

import random

import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

random.seed(1)
torch.manual_seed(1)
QUESTION = 8


def example():
    question = [random.randrange(5, 20) for _ in range(QUESTION)]
    answer = [max(question), min(question), question[0], question[-1], 2]
    return {
        "input_ids": torch.tensor(question + answer),
        "labels": torch.tensor([-100] * QUESTION + answer),
        "attention_mask": torch.ones(QUESTION + len(answer), dtype=torch.long),
    }


loader = DataLoader([example() for _ in range(1600)], batch_size=32, shuffle=True)
config = LlamaConfig(
    vocab_size=20,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    eos_token_id=2,
)
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(4):
    for batch in loader:
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3))
