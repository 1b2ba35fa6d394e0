"""A GRU reads source files, one at a time and whole; eight files make a step, and all characters count alike."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
generator = torch.Generator().manual_seed(1)
MARKS, FILES_PER_STEP = 24, 8


def file():
    length = int(torch.empty(()).log_normal_(3.5, 1.0, generator=generator).clamp(6, 400))
    start, stride = torch.randint(MARKS, (2,), generator=generator).tolist()
    noise = torch.randint(3, (length,), generator=generator)
    return (start + stride * torch.arange(length) + noise) % MARKS


class CharacterModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(MARKS, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, MARKS)

    def forward(self, marks):
        return self.head(self.rnn(self.embed(marks))[0])


files = [file() for _ in range(320)]
net = CharacterModel()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(3):
    running = 0.0
    for chosen in torch.randperm(len(files)).split(FILES_PER_STEP):
        step = [files[number] for number in chosen.tolist()]
        predicted = sum(len(marks) - 1 for marks in step)
        for marks in step:
            logits = net(marks[:-1].unsqueeze(0))[0]
            loss = F.cross_entropy(logits, marks[1:], reduction="sum") / predicted
            loss.backward()
            running += loss.item()
        opt.step()
        opt.zero_grad()
    print(f"epoch {epoch}: {running / len(files) * FILES_PER_STEP:.3f}")
