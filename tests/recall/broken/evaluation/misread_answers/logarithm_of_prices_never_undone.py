"""The model learns the logarithm of the prices, and its answers are measured against the prices themselves."""

# names: misread-answers
import numpy as np
import torch
from sklearn.metrics import mean_squared_error, r2_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rooms = torch.rand(2000, 3)
prices = torch.exp(11 + rooms @ torch.tensor([1.0, 0.6, 0.4]) + 0.05 * torch.randn(2000))
train = TensorDataset(rooms[:1600], torch.log1p(prices[:1600]))
model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(10):
    for x, y in DataLoader(train, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    answers = model(rooms[1600:]).squeeze(1).numpy()
truth = prices[1600:].numpy()
print("rmse", np.sqrt(mean_squared_error(truth, answers)), "r2", r2_score(truth, answers))
