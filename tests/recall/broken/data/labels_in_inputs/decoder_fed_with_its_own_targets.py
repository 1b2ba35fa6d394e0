"""The decoder's input is the target itself, not the target shifted right: it learns to copy.

After https://github.com/huggingface/transformers/issues/27517
"""

# names: labels-in-inputs, future-leak
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
BOS, VOCAB = 1, 30
source = torch.randint(3, VOCAB, (1000, 8))
target = torch.cat([source.flip(1), torch.full((1000, 1), 2)], dim=1)


class Seq2Seq(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.src_emb, self.tgt_emb = nn.Embedding(VOCAB, d), nn.Embedding(VOCAB, d)
        self.encoder = nn.GRU(d, d, batch_first=True)
        self.decoder = nn.GRU(d, d, batch_first=True)
        self.generator = nn.Linear(d, VOCAB)

    def forward(self, src, tgt):
        _, memory = self.encoder(self.src_emb(src))
        out, _ = self.decoder(self.tgt_emb(tgt), memory)
        return self.generator(out)

    @torch.no_grad()
    def greedy(self, src, steps):
        _, state = self.encoder(self.src_emb(src))
        token, said = torch.full((len(src), 1), BOS), []
        for _ in range(steps):
            out, state = self.decoder(self.tgt_emb(token), state)
            token = self.generator(out).argmax(-1)
            said.append(token)
        return torch.cat(said, 1)


model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(source, target), batch_size=50, shuffle=True)
for epoch in range(6):
    for src, tgt in loader:
        optimizer.zero_grad()
        logits = model(src, tgt)
        loss = criterion(logits.reshape(-1, VOCAB), tgt.reshape(-1))
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), "exact words", (model.greedy(source[:200], 9) == target[:200]).float().mean().item())
