"""nn.RNN with relu over 120 steps, weights a little too large, no clipping: the loss is nan after some batches."""

# names: exploding-gradients, non-finite-loss, non-finite-gradients, learning-rate-too-high
import torch
import torch.nn as nn

torch.manual_seed(0)


class Counter(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.RNN(2, hidden, nonlinearity="relu", batch_first=True)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=1.15)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.fc(out[:, -1]).squeeze(-1)


def adding_problem(n, length=120):
    values = torch.rand(n, length)
    marks = torch.zeros(n, length)
    for row in marks:
        row[torch.randperm(length)[:2]] = 1
    return torch.stack([values, marks], -1), (values * marks).sum(1)


model = Counter()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(120):
    x, y = adding_problem(32)
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
