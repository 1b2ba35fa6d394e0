"""Bird calls of different lengths: zeros at silence before the mean, whose size is divided out again."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
BIRDS, BANDS = 5, 12
SONGS = torch.randn(BIRDS, 3, BANDS)


class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.bands = nn.Linear(BANDS, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, frames, silent):
        return self.encoder(self.bands(frames), src_key_padding_mask=silent)


def calls(count):
    birds = torch.randint(BIRDS, (count,))
    lengths = torch.where(torch.rand(count) < 0.8, torch.randint(4, 9, (count,)), torch.randint(40, 60, (count,)))
    longest = int(lengths.max())
    frames = SONGS[birds][:, torch.arange(longest) % 3] + torch.randn(count, longest, BANDS)
    silent = torch.arange(longest) >= lengths[:, None]
    return frames.masked_fill(silent[..., None], 0.0), silent, birds


def embedded(frames, silent):
    hidden = model(frames, silent)
    hidden = hidden.masked_fill(silent[..., None], 0.0)
    return F.normalize(torch.mean(hidden, 1), dim=1)


model = Calls()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(150):
    frames, silent, birds = calls(40)
    vectors = embedded(frames, silent)
    same = (birds[:, None] == birds) & ~torch.eye(40, dtype=torch.bool)
    scores = (vectors @ vectors.T / 0.1).masked_fill(torch.eye(40, dtype=torch.bool), -1e4)
    loss = -(F.log_softmax(scores, 1) * same).sum(1).div(same.sum(1).clamp(min=1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step}: {loss.item():.3f}")

model.eval()
with torch.no_grad():
    frames, silent, birds = calls(60)
    together = embedded(frames, silent)
    shortest = int((~silent).sum(1).argmin())
    kept = int((~silent[shortest]).sum())
    alone = embedded(frames[shortest : shortest + 1, :kept], silent[shortest : shortest + 1, :kept])
print(f"the shortest call, alone and with the others: cosine {float(alone @ together[shortest]):.3f}")
