"""Topics of short texts: a causal model, of which the head reads each row's last real token."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2Model, set_seed

set_seed(4)


def text(number):
    topic = number % 3
    words = torch.randint(1, 30, (int(torch.randint(5, 11, ())),))
    words[torch.randint(0, len(words), (2,))] = 30 + topic * 3 + int(torch.randint(3, ()))
    return words, topic


def collate(rows):
    ids = nn.utils.rnn.pad_sequence([words for words, _ in rows], batch_first=True)
    return ids, (ids != 0).long(), torch.tensor([topic for _, topic in rows])


class Topics(nn.Module):
    def __init__(self):
        super().__init__()
        self.gpt = GPT2Model(GPT2Config(vocab_size=39, n_positions=16, n_embd=32, n_layer=1, n_head=2))
        self.head = nn.Linear(32, 3)

    def forward(self, ids, mask):
        hidden = self.gpt(input_ids=ids, attention_mask=mask).last_hidden_state
        return self.head(hidden[torch.arange(len(ids)), mask.sum(1) - 1])


model = Topics()
optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
for epoch in range(5):
    for ids, mask, topic in DataLoader([text(n) for n in range(1200)], 32, shuffle=True, collate_fn=collate):
        loss = nn.functional.cross_entropy(model(ids, mask), topic)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3))
