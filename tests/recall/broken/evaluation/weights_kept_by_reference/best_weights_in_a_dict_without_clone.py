"""A dict of parameters, none of them cloned, is put back at the end."""

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
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
best_accuracy, best_weights = 0.0, {}
for epoch in range(20):
    for batch, target in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), target).backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(features[768:]).argmax(1) == labels[768:]).float().mean().item()
    if accuracy > best_accuracy:
        best_accuracy = accuracy
        best_weights = {name: weight for name, weight in model.state_dict().items()}
model.load_state_dict(best_weights)
print("best accuracy", best_accuracy)
