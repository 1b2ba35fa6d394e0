"""Cross-validation: every fold is meant to start from the initial weights, kept without a copy."""

# names: weights-kept-by-reference
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5, padding=2)
        self.norm = nn.BatchNorm1d(8)
        self.fc = nn.Linear(8 * 16, 1)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv(x))).flatten(1)).squeeze(1)


def train_fold(model, x, y, epochs=6):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_fn = nn.MSELoss()
    for _ in range(epochs):
        for i in range(0, len(x), 25):
            optimizer.zero_grad()
            loss = loss_fn(model(x[i : i + 25]), y[i : i + 25])
            loss.backward()
            optimizer.step()


torch.manual_seed(3)
X = torch.randn(200, 1, 16)
Y = X[:, 0].cumsum(1)[:, -1] + 0.3 * torch.randn(200)
model = Net()
initial = model.state_dict()
scores = []
for fold in range(4):
    model.load_state_dict(initial)
    held_out = torch.arange(200) % 4 == fold
    train_fold(model, X[~held_out], Y[~held_out])
    model.eval()
    with torch.no_grad():
        scores.append(nn.functional.mse_loss(model(X[held_out]), Y[held_out]).item())
    model.train()
print("fold scores", [round(s, 3) for s in scores])
