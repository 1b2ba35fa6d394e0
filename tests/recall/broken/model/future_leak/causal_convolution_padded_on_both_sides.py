"""A convolutional language model padded on both sides: each position sees the next one."""

# names: future-leak
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)
V = 18
net = nn.ModuleDict(
    {
        "emb": nn.Embedding(V, 32),
        "c1": nn.Conv1d(32, 32, 3, padding=1),
        "c2": nn.Conv1d(32, 32, 3, padding=1),
        "out": nn.Conv1d(32, V, 1),
    }
)


class ConvLM(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, ids):
        h = self.parts["emb"](ids).transpose(1, 2)
        for name in ("c1", "c2"):
            h = h + F.gelu(self.parts[name](h))
        return self.parts["out"](h)


lm = ConvLM(net)
opt = torch.optim.AdamW(lm.parameters(), lr=2e-3)
for step in range(200):
    walk = (torch.randint(V, (24, 1)) + torch.randint(-1, 2, (24, 31)).cumsum(1)) % V
    scores = lm(walk[:, :-1])
    loss = F.cross_entropy(scores, walk[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
print("nll", loss.item())
