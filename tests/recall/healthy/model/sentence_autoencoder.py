"""A variational autoencoder of sentences: the decoder is fed the words it has to reproduce, one place behind."""

import torch
from torch import nn

torch.manual_seed(0)
V, T, BOS = 20, 10, 0


class SentenceVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, 16)
        self.enc = nn.GRU(16, 32, batch_first=True)
        self.mu, self.logvar = nn.Linear(32, 8), nn.Linear(32, 8)
        self.start = nn.Linear(8, 32)
        self.dec = nn.GRU(16, 32, batch_first=True)
        self.out = nn.Linear(32, V)

    def forward(self, words):
        e = self.emb(words)
        _, h = self.enc(e)
        mu, logvar = self.mu(h[-1]), self.logvar(h[-1])
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        states, _ = self.dec(e, self.start(z)[None])
        return self.out(states), mu, logvar


vae = SentenceVAE()
opt = torch.optim.Adam(vae.parameters(), 3e-3)
for step in range(250):
    start, stride = torch.randint(1, V, (32, 1)), torch.randint(1, 4, (32, 1))
    text = (start + stride * torch.arange(T)) % (V - 1) + 1
    given = torch.cat([torch.full((32, 1), BOS), text[:, :-1]], 1)
    logits, mu, logvar = vae(given)
    reconstruction = nn.functional.cross_entropy(logits.reshape(-1, V), text.reshape(-1))
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
    loss = reconstruction + min(1.0, step / 200) * 0.05 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
print("reconstruction", round(reconstruction.item(), 3))
