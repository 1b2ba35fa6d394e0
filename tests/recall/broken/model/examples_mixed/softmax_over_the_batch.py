"""The softmax of a classifier runs over the rows of the batch."""

# names: examples-mixed, probabilities-as-logits
import torch
from torch import nn

torch.manual_seed(0)
centres = 2 * torch.randn(4, 16)
labels = torch.randint(4, (1024,))
features = centres[labels] + torch.randn(1024, 16)

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4), nn.Softmax(dim=0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(300):
    rows = torch.randint(1024, (32,))
    loss = nn.functional.cross_entropy(model(features[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
