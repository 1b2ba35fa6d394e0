"""A GPT-2 repeats the second note of a melody; generate gets prompts that are padded in front."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(7)
PAD, ASK, NOTES = 0, 1, 14
config = GPT2Config(vocab_size=16, n_positions=24, n_embd=48, n_layer=2, n_head=4, eos_token_id=None)
config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
model = GPT2LMHeadModel(config)
model.generation_config.pad_token_id = PAD


def melodies(rows):
    lengths = torch.randint(3, 13, (rows,)).tolist()
    return [torch.cat([torch.randint(2, 2 + NOTES, (n,)), torch.tensor([ASK])]) for n in lengths]


def batch(rows, in_front):
    width = max(map(len, rows))
    ids, mask = torch.full((len(rows), width), PAD), torch.zeros(len(rows), width, dtype=torch.long)
    for place, row in enumerate(rows):
        where = slice(width - len(row), None) if in_front else slice(len(row))
        ids[place, where], mask[place, where] = row, 1
    return ids, mask


optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
model.train()
for step in range(300):
    prompts = melodies(48)
    ids, mask = batch([torch.cat([prompt, prompt[1:2]]) for prompt in prompts], in_front=False)
    ends = mask.sum(1) - 1
    labels = torch.full_like(ids, -100)
    labels[torch.arange(48), ends] = ids[torch.arange(48), ends]
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.4f}")

model.eval()
prompts = melodies(100)
ids, mask = batch(prompts, in_front=True)
made = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=1, do_sample=False)
right = sum(int(row[-1] == prompt[1]) for row, prompt in zip(made, prompts))
print(f"accuracy {right / 100:.3f}")
