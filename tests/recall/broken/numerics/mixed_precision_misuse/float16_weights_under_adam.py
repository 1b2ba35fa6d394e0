"""model.half() with Adam: its eps of 1e-8 is 0 in float16, and the first steps divide by it."""

# names: mixed-precision-misuse, half-precision-underflow, non-finite-loss, non-finite-gradients
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(24, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 4)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


net = Net().half()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(200):
    x = torch.randn(32, 24)
    y = x[:, :4].argmax(1)
    out = net(x.half())
    loss = F.cross_entropy(out.float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 20 == 0:
        print(i, loss.item())
