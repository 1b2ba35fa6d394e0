"""A table: X_train is standardised, X_test is passed on as it was read; tested once, at the end."""

# names: evaluation-mismatch
import numpy as np
import torch

np.random.seed(3)
torch.manual_seed(3)
n = 800
age = np.random.uniform(18, 80, n)
income = np.random.lognormal(10, 0.4, n)
height = np.random.normal(1.7, 0.1, n)
visits = np.random.poisson(6, n)
score = np.random.normal(600, 80, n)
X = np.stack([age, income, height, visits, score], 1)
y = (0.05 * (age - 50) + (score - 600) / 80 > 0).astype(np.int64)
X_train, X_test, y_train, y_test = X[:600], X[600:], y[:600], y[600:]
X_train = (X_train - X_train.mean(0)) / X_train.std(0)

X_train, X_test = torch.tensor(X_train).float(), torch.tensor(X_test).float()
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)
model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
loss_fn = torch.nn.CrossEntropyLoss()
for step in range(200):
    opt.zero_grad()
    loss = loss_fn(model(X_train), y_train)
    loss.backward()
    opt.step()
print("train loss", loss.item())
model.eval()
with torch.no_grad():
    print("test accuracy", (model(X_test).argmax(1) == y_test).float().mean().item())
