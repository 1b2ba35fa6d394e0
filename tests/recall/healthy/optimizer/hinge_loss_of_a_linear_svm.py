"""A linear SVM: hinge loss on labels of -1 and 1, weight decay as its margin."""

import numpy as np
import torch

rng = np.random.RandomState(0)
torch.manual_seed(0)
shift = np.array([1.5, 1.0])
X = np.concatenate([rng.randn(300, 2) + shift, rng.randn(300, 2) - shift]).astype("float32")
Y = np.concatenate([np.ones(300), -np.ones(300)]).astype("float32")
perm = rng.permutation(600)
X, Y = torch.from_numpy(X[perm]), torch.from_numpy(Y[perm])
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-3)
for epoch in range(20):
    sum_loss = 0.0
    for i in range(0, 600, 20):
        output = model(X[i : i + 20]).squeeze()
        loss = torch.clamp(1 - output * Y[i : i + 20], min=0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sum_loss += loss.item()
    print(f"Epoch {epoch:2d} hinge {sum_loss / 30:.4f}")
print("accuracy", ((model(X).squeeze() > 0) == (Y > 0)).float().mean().item())
