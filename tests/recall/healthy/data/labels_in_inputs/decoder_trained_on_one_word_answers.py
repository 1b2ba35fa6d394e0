"""A decoder learns only the one-word answer after a prompt, which is mostly "yes", and an end token."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
NO, YES, END, ASK, WORDS, LENGTH = 0, 1, 2, 3, 40, 12


def questions(n):
    prompts = torch.randint(4, WORDS, (n, LENGTH - 3))
    answers = torch.where((prompts[:, 0] < 28), YES, NO)
    tail = torch.stack([torch.full((n,), ASK), answers, torch.full((n,), END)], 1)
    ids = torch.cat([prompts, tail], 1)
    labels = ids.clone()
    labels[:, : LENGTH - 2] = -100
    return TensorDataset(ids, labels)


class Decoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed, self.position = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, WORDS)
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, ids, labels):
        logits = self.head(self.blocks(self.embed(ids) + self.position.weight, mask=self.causal, is_causal=True))
        loss = nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100
        )
        return logits, loss


model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(6):
    for ids, labels in DataLoader(questions(960), batch_size=32, shuffle=True):
        _, loss = model(ids, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
