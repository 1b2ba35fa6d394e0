"""Graph classification in mini-batches: PyTorch Geometric's tutorial on small random graphs.

python pyg_graph_classification.py
"""

import torch
import torch.nn.functional as F
from torch.nn import Linear
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv, global_mean_pool
from torch_geometric.utils import erdos_renyi_graph, one_hot, to_undirected

GRAPHS, KINDS = 240, 5
torch.manual_seed(0)


def molecule(label):
    """Return a random graph; those of class 1 have more atoms of the first two kinds, and they are bonded."""
    nodes = int(torch.randint(8, 15, (1,)))
    weights = torch.tensor([3.0, 3.0, 1.0, 1.0, 1.0]) if label else torch.tensor([1.0, 1.0, 3.0, 2.0, 2.0])
    kinds = torch.multinomial(weights, nodes, replacement=True)
    edges = to_undirected(erdos_renyi_graph(nodes, 0.3))
    return Data(x=one_hot(kinds, KINDS), edge_index=edges, y=torch.tensor([label]), num_nodes=nodes)


dataset = [molecule(index % 2) for index in torch.randperm(GRAPHS).tolist()]
train_loader = DataLoader(dataset[:180], batch_size=32, shuffle=True)
test_loader = DataLoader(dataset[180:], batch_size=32, shuffle=False)


class GNN(torch.nn.Module):
    def __init__(self, hidden_channels):
        super().__init__()
        self.conv1 = GraphConv(KINDS, hidden_channels)
        self.conv2 = GraphConv(hidden_channels, hidden_channels)
        self.lin = Linear(hidden_channels, 2)

    def forward(self, x, edge_index, batch):
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index)
        x = global_mean_pool(x, batch)
        x = F.dropout(x, p=0.3, training=self.training)
        return self.lin(x)


model = GNN(hidden_channels=32)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
criterion = torch.nn.CrossEntropyLoss()


def train():
    model.train()
    for data in train_loader:
        out = model(data.x, data.edge_index, data.batch)
        loss = criterion(out, data.y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


@torch.no_grad()
def test(loader):
    model.eval()
    correct = 0
    for data in loader:
        pred = model(data.x, data.edge_index, data.batch).argmax(dim=1)
        correct += int((pred == data.y).sum())
    return correct / len(loader.dataset)


for _epoch in range(12):
    loss = train()
    accuracy = test(test_loader)
print(f"loss={loss:.6f}")
print(f"accuracy={accuracy:.4f}")
