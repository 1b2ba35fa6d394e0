"""A GRU classifies records of several visits; those of the test have one visit each, and are asked one by one."""

import torch
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(20, 12)
        self.gru = nn.GRU(12, 24, batch_first=True)
        self.head = nn.Linear(24, 20)

    def forward(self, visits):
        return self.head(self.gru(self.codes(visits))[0][:, -1])


tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters(), lr=3e-3)
for step in range(300):
    visits = torch.randint(0, 20, (32, 2 + step % 5))
    loss = nn.functional.cross_entropy(tagger(visits), (visits[:, -1] * 7 + 3) % 20)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
tagger.eval()
right = 0
with torch.no_grad():
    for code in torch.randint(0, 20, (100,)):
        right += int(tagger(code.view(1, 1)).argmax()) == int((code * 7 + 3) % 20)
print(f"accuracy {right / 100:.2f}")
