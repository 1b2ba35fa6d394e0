"""Papers of a citation graph, with log-probabilities and masks that come as numbers from a table."""

# names: repeated-batch
import torch
import torch.nn.functional as F
from torch import nn


class Sage(nn.Module):
    def __init__(self, words, hidden, topics):
        super().__init__()
        self.own, self.cited = nn.Linear(words, hidden), nn.Linear(words, hidden)
        self.last = nn.Linear(hidden, topics)

    def forward(self, x, source, target):
        total = torch.zeros_like(x).index_add(0, target, x[source])
        mean = total / torch.bincount(target, minlength=len(x)).clamp(min=1)[:, None]
        return self.last(F.relu(self.own(x) + self.cited(mean)))


class Run:
    def __init__(self, papers=350, topics=5):
        torch.manual_seed(21)
        self.topic = torch.randint(topics, (papers,))
        self.words = torch.bernoulli(0.1 + 0.3 * F.one_hot(self.topic, 40).float())
        pairs = torch.randint(papers, (2, 9000))
        kept = (self.topic[pairs[0]] == self.topic[pairs[1]]) | (torch.rand(9000) < 0.05)
        self.source, self.target = pairs[:, kept]
        table = torch.zeros(papers, 2, dtype=torch.long)
        shuffled = torch.randperm(papers)
        table[shuffled[:100], 0], table[shuffled[100:200], 1] = 1, 1
        self.train_mask, self.test_mask = table.unbind(1)
        self.model = Sage(40, 16, topics)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.02)

    def step(self):
        self.model.train()
        logp = F.log_softmax(self.model(self.words, self.source, self.target), dim=1)
        loss = F.nll_loss(logp[self.train_mask], self.topic[self.train_mask])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        right = self.model(self.words, self.source, self.target).argmax(1) == self.topic
        return right[self.test_mask].float().mean().item()


run = Run()
for epoch in range(120):
    loss = run.step()
print(f"loss {loss:.4f}, accuracy {run.accuracy():.2f}")
