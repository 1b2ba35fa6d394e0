"""A scorer rates 6 answers of each question, the right one first: the label is always 0."""

import torch
from torch import nn

torch.manual_seed(0)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.question, self.answer = nn.Linear(12, 24), nn.Linear(12, 24)
        self.score = nn.Linear(24, 1)

    def forward(self, question, answers):
        joined = torch.tanh(self.question(question)[:, None] * self.answer(answers))
        return self.score(joined).squeeze(2)


scorer = Scorer()
optimizer = torch.optim.Adam(scorer.parameters(), lr=3e-3)
for step in range(400):
    question = torch.randn(32, 12)
    answers = torch.randn(32, 6, 12)
    answers[:, 0] = question + 0.3 * torch.randn(32, 12)
    loss = nn.functional.cross_entropy(scorer(question, answers), torch.zeros(32, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
