"""The loss has weights of its own, and the optimizer holds them, too."""

import torch
from torch import nn

torch.manual_seed(0)
VOCAB, HEAD = 60, 20


class SplitCrossEntropy(nn.Module):
    """Frequent words in the head, the others behind one tombstone."""

    def __init__(self, hidden):
        super().__init__()
        self.head = nn.Linear(hidden, HEAD + 1)
        self.tail = nn.Linear(hidden, VOCAB - HEAD)

    def forward(self, hidden, targets):
        head, tail = self.head(hidden).log_softmax(-1), self.tail(hidden).log_softmax(-1)
        rare = targets >= HEAD
        first = -head.gather(1, targets.clamp(max=HEAD)[:, None]).squeeze(1)
        second = -tail.gather(1, (targets - HEAD).clamp(min=0)[:, None]).squeeze(1)
        return (first + torch.where(rare, second, torch.zeros_like(second))).mean()


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(VOCAB, 24)
        self.rnn = nn.LSTM(24, 32, batch_first=True)

    def forward(self, x):
        return self.rnn(self.encoder(x))[0]


start = torch.randint(0, VOCAB, (400, 1))
text = (start + 7 * torch.arange(13)) % VOCAB
model, criterion = RNNModel(), SplitCrossEntropy(32)
optimizer = torch.optim.SGD([*model.parameters(), *criterion.parameters()], lr=0.5)
for epoch in range(6):
    model.train()
    total = 0.0
    for rows in text[torch.randperm(400)].split(20):
        optimizer.zero_grad()
        output = model(rows[:, :-1])
        loss = criterion(output.reshape(-1, 32), rows[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total += loss.item()
    print("epoch", epoch, "loss", total / 20)
