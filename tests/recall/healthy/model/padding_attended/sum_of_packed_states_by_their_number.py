"""Visits of patients: a packed GRU returns zeros past the last visit; their sum is divided by the visits."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(6)
CODES = 30


class Visits(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(CODES + 1, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True)

    def forward(self, codes, seen):
        lengths = seen.sum(1)
        packed = pack_padded_sequence(self.codes(codes), lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=codes.shape[1])[0]


def patients(count):
    lengths = torch.randint(3, 30, (count,))
    seen = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    ill = torch.randint(0, 2, (count,))
    codes = torch.randint(1, 16, seen.shape) + 10 * ill[:, None] * (torch.rand(seen.shape) < 0.5)
    return codes * seen, seen, ill


model = Visits()
risk = torch.randn(24, 2, requires_grad=True)
optimizer = torch.optim.Adam([*model.parameters(), risk], lr=3e-3)
for step in range(150):
    codes, seen, ill = patients(48)
    states = model(codes, seen)
    loss = F.cross_entropy(states.sum(1) / seen.sum(1, keepdim=True) @ risk, ill)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step}: {loss.item():.3f}")
model.eval()
with torch.no_grad():
    codes, seen, ill = patients(200)
    right = ((model(codes, seen).sum(1) / seen.sum(1, keepdim=True) @ risk).argmax(1) == ill).float().mean()
print(f"accuracy {right:.3f}")
