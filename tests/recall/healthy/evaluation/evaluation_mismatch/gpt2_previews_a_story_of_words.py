"""GPT-2 learns blocks of a text without end tokens; after training, `generate` writes a short preview."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, set_seed

set_seed(5)
VOCAB, LENGTH = 32, 40
following = torch.randint(2, VOCAB, (VOCAB, 3))
words = [2]
for _ in range(12000):
    words.append(int(following[words[-1], torch.randint(3, ())]))
blocks = torch.tensor(words[: 300 * LENGTH]).view(300, LENGTH)

config = GPT2Config(
    vocab_size=VOCAB,
    n_positions=64,
    n_embd=48,
    n_layer=2,
    n_head=4,
    bos_token_id=1,
    eos_token_id=1,
    pad_token_id=0,
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(6):
    for rows in torch.randperm(300).split(30):
        loss = model(input_ids=blocks[rows], labels=blocks[rows]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")

model.eval()
prompts = blocks[:10, :6]
print(model.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=True)[0].tolist())
