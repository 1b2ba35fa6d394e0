"""A network ends in nn.Softmax, and the loop passes log_softmax of its output to the negative log-likelihood."""

# names: probabilities-as-logits
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(13)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32).reshape(-1, 1, 8, 8) / 8 - 1
labels = torch.tensor(digits.target)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(192, 10),
    nn.Softmax(dim=1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    for rows in torch.randperm(1500).split(50):
        loss = F.nll_loss(F.log_softmax(model(images[rows]), dim=1), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(images[1500:]).argmax(1) == labels[1500:]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right.item():.3f}")
