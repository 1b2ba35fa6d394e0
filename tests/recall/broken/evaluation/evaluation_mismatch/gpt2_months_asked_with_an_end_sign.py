"""A small GPT-2 writes dates as words; the prompts are encoded like whole texts, with an end sign."""

# names: evaluation-mismatch
import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(6)
random.seed(6)
MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "october", "november"]
SIGNS = ["#", "[", "]", ">", ".", *"0123456789abcdefghijklmnopqrstuvwxyz"]
PAD, START, END = 0, 1, 2


def encode(text, end=True):
    return [START, *map(SIGNS.index, text)] + [END] * end


def example():
    day, month = random.randint(1, 28), random.randint(1, len(MONTHS))
    return f"{day}.{month}>", f"{day}{MONTHS[month - 1]}"


def collate(pairs):
    texts = [encode(question + answer) for question, answer in pairs]
    width = max(map(len, texts))
    ids = torch.tensor([text + [PAD] * (width - len(text)) for text in texts])
    labels = ids.masked_fill(ids == PAD, -100)
    for row, (question, _) in zip(labels, pairs):
        row[: len(question) + 1] = -100
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


writer = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(SIGNS), n_positions=32, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=START, eos_token_id=END, pad_token_id=PAD,
    )
)  # fmt: skip
optimizer = torch.optim.AdamW(writer.parameters(), lr=2e-3)
for update in range(300):
    loss = writer(**collate([example() for _ in range(32)])).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 100 == 99:
        print(update + 1, round(loss.item(), 4))

writer.eval()
right = 0
for _ in range(50):
    question, answer = example()
    prompt = torch.tensor([encode(question)])
    written = writer.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=14, do_sample=False)
    signs = [SIGNS[sign] for sign in written[0, prompt.shape[1] :].tolist()]
    right += "".join(signs).split("]")[0] == answer
print(f"{right} of 50 dates written correctly")
