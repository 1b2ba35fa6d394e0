"""A model of names: 0 pads a batch and ends each name, and the mask leaves only the padding out."""

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(5)
END = 0
CONSONANTS, VOWELS = "bdfgklmnprst", "aeiou"


def one_of(letters):
    return letters[int(torch.randint(len(letters), ()))]


def name():
    letters = "".join(one_of(CONSONANTS) + one_of(VOWELS) for _ in range(int(torch.randint(2, 5, ()))))
    return [ord(letter) - 96 for letter in letters] + [END]


names = [name() for _ in range(600)]
config = GPT2Config(
    vocab_size=27, n_positions=12, n_embd=32, n_layer=2, n_head=2, bos_token_id=END, eos_token_id=END
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    order = torch.randperm(len(names)).tolist()
    total = 0.0
    for start in range(0, len(order), 32):
        rows = [names[i] for i in order[start : start + 32]]
        width = max(map(len, rows))
        tokens = torch.tensor([row + [END] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        logits = model(input_ids=tokens, attention_mask=mask).logits
        targets = tokens[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, 27), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total)
