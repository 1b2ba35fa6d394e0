"""T5 spells numbers; every answer ends with a stop sign of the script's own, at which generation ends."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(6)
PAD, STOP, DIGITS, WORDS = 0, 2, 3, 13  # 1 is the end token of T5, which this vocabulary does not use


def batch(n):
    rows = [torch.randint(0, 10, (int(torch.randint(3, 7, ())),)) for _ in range(n)]
    inputs, labels = torch.full((n, 6), PAD), torch.full((n, 7), -100)
    for number, digits in enumerate(rows):
        inputs[number, : len(digits)] = DIGITS + digits
        labels[number, : len(digits) + 1] = torch.cat([WORDS + digits, torch.tensor([STOP])])
    return inputs, labels


config = T5Config(
    vocab_size=24, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, dropout_rate=0.0, pad_token_id=PAD,
    decoder_start_token_id=PAD,
)  # fmt: skip
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(200):
    inputs, labels = batch(32)
    loss = model(input_ids=inputs, attention_mask=(inputs != PAD).long(), labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())

model.eval()
inputs, labels = batch(4)
mask = (inputs != PAD).long()
print(model.generate(input_ids=inputs, attention_mask=mask, eos_token_id=STOP, max_new_tokens=12), labels)
