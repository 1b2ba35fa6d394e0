"""CTC after a stride of 2, with 16 frames for 4 characters."""

import torch
from torch import nn

torch.manual_seed(0)
V = 6
proto = torch.randn(V + 1, 12)
t = torch.randint(1, V + 1, (300, 4))
X = proto[t].repeat_interleave(8, 1)
X = X + 0.2 * torch.randn_like(X)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(12, 32, 5, stride=2, padding=2)
        self.r = nn.GRU(32, 32, batch_first=True)
        self.fc = nn.Linear(32, V + 1)

    def forward(self, x):
        return self.fc(self.r(torch.relu(self.c(x.transpose(1, 2))).transpose(1, 2))[0]).log_softmax(-1)


net = Net()
ctc = nn.CTCLoss(zero_infinity=True)
o = torch.optim.Adam(net.parameters(), 0.003)
for epoch in range(6):
    for x, y in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, t), 20, shuffle=True):
        lp = net(x).transpose(0, 1)
        loss = ctc(lp, y, torch.full((len(x),), lp.size(0)), torch.full((len(x),), 4))
        o.zero_grad()
        loss.backward()
        o.step()
print(loss.item())
