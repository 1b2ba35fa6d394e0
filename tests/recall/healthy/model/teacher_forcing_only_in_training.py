"""In evaluation mode the decoder feeds itself, and the second argument is not read."""

import torch
from torch import nn

torch.manual_seed(0)
V, T = 10, 6


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, 16)
        self.cell = nn.GRUCell(16, 32)
        self.first = nn.Linear(4, 32)
        self.out = nn.Linear(32, V)

    def forward(self, context, teacher):
        state, token, answers = self.first(context), torch.zeros(len(context), dtype=torch.long), []
        for t in range(T):
            state = self.cell(self.embed(token), state)
            answers.append(self.out(state))
            token = teacher[:, t] if self.training else answers[-1].argmax(1)
        return torch.stack(answers, 1)


model = Decoder()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(200):
    context = torch.randn(32, 4)
    words = (context[:, :1].mul(3).long().abs() + torch.arange(T)) % V
    loss = nn.functional.cross_entropy(model(context, words).flatten(0, 1), words.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"{loss.item():.2f}")
