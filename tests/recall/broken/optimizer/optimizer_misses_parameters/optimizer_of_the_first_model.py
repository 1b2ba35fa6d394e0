"""A second model is trained with the optimizer of the first one: a cell that was copied, model_0 left in it.

After https://github.com/mrdbourke/pytorch-deep-learning/issues/399
"""

# names: optimizer-misses-parameters, unchanged-parameters
import torch
from torch import nn

torch.manual_seed(42)
X = torch.arange(0, 1, 0.005).unsqueeze(dim=1)
y = 0.7 * X + 0.3
order = torch.randperm(len(X))
X_train, y_train, X_test, y_test = X[order[:160]], y[order[:160]], X[order[160:]], y[order[160:]]


class LinearRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(1))
        self.bias = nn.Parameter(torch.randn(1))

    def forward(self, x):
        return self.weights * x + self.bias


class LinearRegression2(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_layer = nn.Linear(1, 1)

    def forward(self, x):
        return self.linear_layer(x)


model_0 = LinearRegression()
model_1 = LinearRegression2()
loss_fn = nn.L1Loss()
optimizer = torch.optim.SGD(params=model_0.parameters(), lr=0.01)  # broken: model_0

for epoch in range(300):
    model_1.train()
    y_pred = model_1(X_train)
    loss = loss_fn(y_pred, y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model_1.eval()
    with torch.inference_mode():
        test_loss = loss_fn(model_1(X_test), y_test)
    if epoch % 50 == 0:
        print(f"Epoch: {epoch} | Train loss: {loss:.4f} | Test loss: {test_loss:.4f}")
