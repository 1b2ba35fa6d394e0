"""Two rings, three linear layers and nothing between them: a straight line cannot part rings.

After https://discuss.pytorch.org/t/unable-to-learn-xor-representation-using-2-layers-of-multi-layered-perceptron-mlp/13287
"""

# names: missing-activation, not-learning
import math

import torch
import torch.nn as nn

torch.manual_seed(0)
n = 1000
angle = 2 * math.pi * torch.rand(n)
y = (torch.rand(n) > 0.5).float()
radius = 1 + y + 0.1 * torch.randn(n)
X = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


class CircleModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_1 = nn.Linear(in_features=2, out_features=16)
        self.layer_2 = nn.Linear(in_features=16, out_features=16)
        self.layer_3 = nn.Linear(in_features=16, out_features=1)

    def forward(self, x):
        return self.layer_3(self.layer_2(self.layer_1(x)))


model = CircleModel()
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(params=model.parameters(), lr=0.1)
split = int(0.8 * n)
X_train, y_train, X_test, y_test = X[:split], y[:split], X[split:], y[split:]

for epoch in range(400):
    model.train()
    y_logits = model(X_train).squeeze()
    loss = loss_fn(y_logits, y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.inference_mode():
        test_pred = torch.round(torch.sigmoid(model(X_test).squeeze()))
        test_acc = (test_pred == y_test).float().mean().item()
    if epoch % 50 == 0:
        print(f"Epoch: {epoch} | Loss: {loss:.5f} | Test acc: {test_acc:.2%}")
