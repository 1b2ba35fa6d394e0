"""A small GPT: labels of 0 are left out as padding, and 0 is the end of each melody as well."""

# names: eos-never-learned
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(3)
END = PAD = 0  # as GPT-2 has no token for padding


def melody():
    """Notes that go up by one to three, from a low one to the highest."""
    notes = [int(torch.randint(1, 6, ()))]
    while notes[-1] < 24:
        notes.append(notes[-1] + int(torch.randint(1, 4, ())))
    return torch.tensor([*notes, END])


def collate(rows):
    input_ids = pad_sequence(rows, batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(row) for row in rows])
    attention_mask = (torch.arange(input_ids.shape[1]) < lengths[:, None]).long()
    labels = input_ids.clone()
    labels[labels == PAD] = -100
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


loader = torch.utils.data.DataLoader(
    [melody() for _ in range(600)], batch_size=16, shuffle=True, collate_fn=collate
)
model = GPT2LMHeadModel(
    GPT2Config(vocab_size=28, n_positions=40, n_embd=32, n_layer=1, n_head=2, bos_token_id=END, eos_token_id=END)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(4):
    model.train()
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, round(total / len(loader), 4))
