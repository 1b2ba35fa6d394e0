"""One score per word, and the softmax is taken over the axis of size 1: every weight is 1.0.

After https://github.com/DEEP-PolyU/KEQA_WSDM19/issues/2
"""

# names: unreached-parameters, unchanged-parameters
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class EntityDetection(nn.Module):
    def __init__(self, vocab=200, dim=24, out=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.lstm = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.attn = nn.Sequential(nn.Linear(3 * dim, dim), nn.Tanh(), nn.Linear(dim, 1))
        self.out = nn.Linear(2 * dim, out)

    def forward(self, text):
        x = self.embed(text)
        outputs, _ = self.lstm(x)
        scores = self.attn(torch.cat([x, outputs], dim=2))
        weights = F.softmax(scores, dim=-1)
        return self.out((weights * outputs).sum(dim=1))


def questions(n):
    text = torch.randint(20, 200, (n, 20))
    topic = torch.randint(0, 8, (n,))
    at = torch.randint(0, 20, (n,))
    text[torch.arange(n), at] = topic
    return text, topic


model = EntityDetection()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for iteration in range(200):
    text, topic = questions(32)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(text), topic)
    loss.backward()
    optimizer.step()
    if iteration % 40 == 0:
        print(iteration, loss.item())
