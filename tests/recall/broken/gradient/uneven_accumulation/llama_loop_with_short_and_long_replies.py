"""A Llama from transformers, which computes its loss itself, in a loop with accumulation and clipping.

After https://github.com/huggingface/transformers/pull/34191
"""

# names: uneven-accumulation
import random

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
random.seed(0)
config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=4, max_position_embeddings=64, pad_token_id=0,
)  # fmt: skip
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)


def reply():
    prompt = [random.randrange(2, 64) for _ in range(6)]
    size = random.choice([1, 1, 2, 24, 30])
    return prompt, [*(prompt * 5)[:size], 1]


def micro_batch(pairs):
    longest = max(len(prompt) + len(said) for prompt, said in pairs)
    ids, labels = [], []
    for prompt, said in pairs:
        padding = longest - len(prompt) - len(said)
        ids.append(prompt + said + [0] * padding)
        labels.append([-100] * len(prompt) + said + [-100] * padding)
    ids, labels = torch.tensor(ids), torch.tensor(labels)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


data = [reply() for _ in range(320)]
gradient_accumulation_steps = 8
model.train()
for epoch in range(2):
    random.shuffle(data)
    batches = [micro_batch(data[at : at + 2]) for at in range(0, len(data), 2)]
    for step, batch in enumerate(batches):
        loss = model(**batch).loss
        loss = loss / gradient_accumulation_steps
        loss.backward()
        if (step + 1) % gradient_accumulation_steps == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item() * gradient_accumulation_steps)
