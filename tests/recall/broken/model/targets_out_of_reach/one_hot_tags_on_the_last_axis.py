"""Tagger with (batch, time, class) scores and one-hot targets: the softmax of the loss goes over the time."""

# names: targets-out-of-reach
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
emb_true = torch.randint(0, 5, (50,))
x = torch.randint(0, 50, (800, 10))
y = emb_true[x]
Y = F.one_hot(y, 5).float()
net = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.Adam(net.parameters(), lr=0.003)
criterion = nn.CrossEntropyLoss()
dl = DataLoader(TensorDataset(x, Y), batch_size=32, shuffle=True)
for epoch in range(8):
    for xb, yb in dl:
        opt.zero_grad()
        o = net(xb)
        loss = criterion(o, yb)
        loss.backward()
        opt.step()
    print(epoch, loss.item(), (o.argmax(2) == yb.argmax(2)).float().mean().item())
