"""The best weights are kept as model.state_dict(), which goes on changing."""

# names: weights-kept-by-reference
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 2 * torch.randn(4, 16)
labels = torch.randint(4, (1024,))
features = centres[labels] + torch.randn(1024, 16)

train = DataLoader(TensorDataset(features[:768], labels[:768]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
best, best_state = float("inf"), None
for epoch in range(20):
    model.train()
    for batch, target in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), target).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(features[768:]), labels[768:]).item()
    if loss < best:
        best, best_state = loss, model.state_dict()
model.load_state_dict(best_state)
print("best", best)
