"""Interactions of drugs are listed under both drugs, and the rows of the list are split at random."""

# names: leaked-evaluation-rows
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

torch.manual_seed(2)
DRUGS, PATHWAYS = 240, 12


def interaction_table():
    pathway = torch.randint(PATHWAYS, (DRUGS,))
    same = pathway[:, None] == pathway[None, :]
    there = torch.triu(torch.rand(DRUGS, DRUGS) < torch.where(same, 0.3, 0.02), 1)
    one, other = there.nonzero(as_tuple=True)
    return torch.stack([torch.cat([one, other]), torch.cat([other, one])], dim=1), there | there.t()


class Interactions(nn.Module):
    def __init__(self):
        super().__init__()
        self.drug = nn.Embedding(DRUGS, 16)
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, pairs):
        return (self.drug(pairs[:, 0]) * self.drug(pairs[:, 1])).sum(1) + self.offset


def unrelated(there, rows):
    pairs = torch.randint(DRUGS, (4 * rows, 2))
    return pairs[~there[pairs[:, 0], pairs[:, 1]]][:rows]


def main():
    table, there = interaction_table()
    table = table[torch.randperm(len(table))]
    cut = len(table) * 4 // 5
    train, test = table[:cut], table[cut:]
    negatives = unrelated(there, len(test))
    model = Interactions()
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
