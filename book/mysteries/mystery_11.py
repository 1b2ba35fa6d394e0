"""Classify wines by their chemistry, and keep the weights of the best epoch.

$ python mystery_11.py
"""

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 16
EPOCHS = 30
LEARNING_RATE = 0.5  # high: fast at first, unstable later
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

wine = load_wine()
order = torch.randperm(len(wine.target))
inputs = torch.tensor(wine.data, dtype=torch.float32)[order]
inputs = (inputs - inputs[:100].mean(dim=0)) / inputs[:100].std(dim=0)
growers = torch.tensor(wine.target)[order]
loader = DataLoader(
    TensorDataset(inputs[:100], growers[:100]), batch_size=BATCH_SIZE, shuffle=True
)

model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.95)
loss_fn = nn.CrossEntropyLoss()


def evaluated():
    """Return the loss and the accuracy on the remaining wines."""
    model.eval()
    with torch.no_grad():
        scores = model(inputs[100:])
        accuracy = (scores.argmax(dim=1) == growers[100:]).float().mean().item()
        return loss_fn(scores, growers[100:]).item(), accuracy


lowest, best_weights = float("inf"), None
for epoch in range(EPOCHS):
    model.train()
    for features, wanted in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(features), wanted)
        loss.backward()
        optimizer.step()
    eval_loss, accuracy = evaluated()
    if eval_loss < lowest:
        lowest, best_weights = eval_loss, model.state_dict()
        print(f"epoch {epoch + 1}: the best so far, loss {eval_loss:.4f}")

model.load_state_dict(best_weights)
final_loss, accuracy = evaluated()
print(f"restored: loss {final_loss:.4f}")
print(f"accuracy={accuracy:.3f}")
