"""SGD with momentum and a weight decay of 2 pulls all filters to zero, where each step is large next to them."""

# names: not-learning
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(18)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32).reshape(-1, 1, 8, 8) / 8 - 1
labels = torch.tensor(digits.target)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(192, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=2.0)
for epoch in range(16):
    for rows in torch.randperm(1500).split(50):
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(images[1500:]).argmax(1) == labels[1500:]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right.item():.3f}")
