"""A graph convolution over a whole graph at once: sparse features, a sparse adjacency matrix, one batch in all.

$ python tests/healthy/pytorch/graph_convolution.py
"""

import torch
from torch import nn

NODES, WORDS, CLASSES = 300, 80, 4
STEPS = 60


class GraphConvolution(nn.Module):
    """Two layers, each of which averages over the neighbours."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WORDS, 16, bias=False), nn.Linear(16, CLASSES)
        self.dropout = nn.Dropout(0.3)

    def forward(self, features, adjacency):
        hidden = torch.sparse.mm(adjacency, torch.sparse.mm(features, self.first.weight.T))
        return torch.sparse.mm(adjacency, self.second(self.dropout(hidden.relu())))


def graph():
    """Return features (300, 80) and adjacency (300, 300), both sparse, and a class (300,) for each node.

    Nodes of one class share words and are joined more often.
    """
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(CLASSES, (NODES,), generator=generator)
    topics = torch.rand(CLASSES, WORDS, generator=generator) < 0.2
    likely = torch.where(topics[labels], 0.15, 0.02)
    features = (torch.rand(NODES, WORDS, generator=generator) < likely).float()
    near = torch.where(labels[:, None] == labels, 0.05, 0.005)
    joined = torch.rand(NODES, NODES, generator=generator) < near
    adjacency = (joined | joined.T).float() + torch.eye(NODES)
    degree = adjacency.sum(1).rsqrt()
    return features.to_sparse(), (degree[:, None] * adjacency * degree).to_sparse(), labels


def build():
    torch.manual_seed(0)
    model = GraphConvolution()
    return model, [graph()], nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=0.02)


def train(model, loader, loss_fn, optimizer):
    ((features, adjacency, labels),) = loader

    @torch.no_grad()
    def evaluate():
        logits = model.eval()(features, adjacency)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(STEPS):
        model.train()
        optimizer.zero_grad()
        loss_fn(model(features, adjacency), labels).backward()
        optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
