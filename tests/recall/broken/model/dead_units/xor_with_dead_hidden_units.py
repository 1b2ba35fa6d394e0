"""XOR with two hidden ReLUs and an unlucky start: no row activates them, the loss stays at 0.69.

After https://juejin.cn/post/7449652882648940555
"""

# names: dead-units
import torch
import torch.nn as nn

torch.manual_seed(3)


class XOR(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 4)
        self.fc2 = nn.Linear(4, 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return torch.sigmoid(self.fc2(x))


def init_weights(m):
    if isinstance(m, nn.Linear):
        m.weight.data.uniform_(-1.0, 0.0)
        m.bias.data.fill_(-0.01)


model = XOR()
model.apply(init_weights)
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
inputs = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.float32)
labels = torch.tensor([[0], [1], [1], [0]], dtype=torch.float32)
for epoch in range(3000):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    if epoch % 500 == 0:
        print(f"Epoch [{epoch + 1}/3000], Loss: {loss.item():.4f}")
print(outputs.detach().flatten().tolist())
