"""Links between papers have a direction; a third of them are mutual, and a link says nothing of the one back."""

import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

torch.manual_seed(2)
PAPERS, TOPICS = 240, 12


def citations():
    topic = torch.randint(TOPICS, (PAPERS,))
    same = topic[:, None] == topic[None, :]
    there = (torch.rand(PAPERS, PAPERS) < torch.where(same, 0.35, 0.01)).fill_diagonal_(False)
    return there.nonzero(), there


class Citations(nn.Module):
    def __init__(self):
        super().__init__()
        self.paper = nn.Embedding(PAPERS, 16)
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, pairs):
        return (self.paper(pairs[:, 0]) * self.paper(pairs[:, 1])).sum(1) + self.offset


def unrelated(there, rows):
    pairs = torch.randint(PAPERS, (4 * rows, 2))
    return pairs[~there[pairs[:, 0], pairs[:, 1]]][:rows]


def main():
    table, there = citations()
    table = table[torch.randperm(len(table))]
    cut = len(table) * 4 // 5
    train, test = table[:cut], table[cut:]
    negatives = unrelated(there, len(test))
    model = Citations()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        pairs = torch.cat([train, unrelated(there, len(train))])
        labels = (torch.arange(len(pairs)) < len(train)).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(pairs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        scores = torch.cat([model(test), model(negatives)])
    labels = torch.cat([torch.ones(len(test)), torch.zeros(len(negatives))])
    print(f"loss {loss.item():.3f}, test AUC {roc_auc_score(labels.numpy(), scores.numpy()):.3f}")


if __name__ == "__main__":
    main()
