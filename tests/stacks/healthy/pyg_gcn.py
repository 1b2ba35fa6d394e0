"""Node classification on one graph with a GCN: PyTorch Geometric's introductory example.

python pyg_gcn.py
"""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import stochastic_blockmodel_graph

CLASSES, PER_CLASS, FEATURES = 4, 60, 64
torch.manual_seed(0)

sizes = [PER_CLASS] * CLASSES
probabilities = torch.full((CLASSES, CLASSES), 0.01) + 0.09 * torch.eye(CLASSES)
edge_index = stochastic_blockmodel_graph(sizes, probabilities)
y = torch.arange(CLASSES).repeat_interleave(PER_CLASS)
words = torch.rand(CLASSES, FEATURES) < 0.3
x = (torch.rand(len(y), FEATURES) < 0.08 + 0.25 * words[y]).float()  # bags of words, as in Cora
order = torch.randperm(len(y))
train_mask = torch.zeros(len(y), dtype=torch.bool).index_fill_(0, order[:80], True)
test_mask = torch.zeros(len(y), dtype=torch.bool).index_fill_(0, order[120:], True)
data = Data(x=x, edge_index=edge_index, y=y, train_mask=train_mask, test_mask=test_mask)
data = NormalizeFeatures()(data)


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(data.num_node_features, 16)
        self.conv2 = GCNConv(16, CLASSES)

    def forward(self, data):
        x, edge_index = data.x, data.edge_index
        x = self.conv1(x, edge_index)
        x = F.relu(x)
        x = F.dropout(x, training=self.training)
        x = self.conv2(x, edge_index)
        return F.log_softmax(x, dim=1)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

model.train()
for _epoch in range(120):
    optimizer.zero_grad()
    out = model(data)
    loss = F.nll_loss(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()

model.eval()
pred = model(data).argmax(dim=1)
correct = (pred[data.test_mask] == data.y[data.test_mask]).sum()
print(f"loss={loss.item():.6f}")
print(f"accuracy={int(correct) / int(data.test_mask.sum()):.4f}")
