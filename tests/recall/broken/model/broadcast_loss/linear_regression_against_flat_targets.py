"""nn.MSELoss between (n, 1) and (n,): the plainest regression does not find its coefficients.

After https://github.com/pytorch/pytorch/issues/16045
"""

# names: broadcast-loss
import torch
import torch.nn as nn

torch.manual_seed(0)
sample_size = 200
x = torch.randn(sample_size, 3)
y = 4 + 7 * x[:, 0] - 3 * x[:, 1] + 0.5 * torch.randn(sample_size)

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.MSELoss()
for step in range(200):
    opt.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, loss.item())
print("weights", net.weight.data, "bias", net.bias.data)
