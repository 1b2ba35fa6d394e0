"""Verses for a GPT: the dataset puts the start token in front of ids that begin with it."""

# names: doubled-special-token
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(23)
START, END = 30, 31


def encode(verse):
    return [START, *verse, END]


class Verses(Dataset):
    def __init__(self, n):
        starts, steps = torch.randint(0, 12, (n,)).tolist(), torch.randint(1, 4, (n,)).tolist()
        lengths = torch.randint(6, 10, (n,)).tolist()
        self.verses = [[(a + b * i) % 30 for i in range(c)] for a, b, c in zip(starts, steps, lengths)]

    def __len__(self):
        return len(self.verses)

    def __getitem__(self, index):
        return torch.tensor([START, *encode(self.verses[index])])


def collate(rows):
    ids = pad_sequence(rows, batch_first=True, padding_value=END)
    mask = pad_sequence([torch.ones(len(row), dtype=torch.long) for row in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


loader = DataLoader(Verses(640), batch_size=16, shuffle=True, collate_fn=collate)
config = GPT2Config(
    vocab_size=32, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=START, eos_token_id=END
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(3):
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
