"""A test of a recurrent network's memory: it is to give back the first number of a sequence."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
sequences = torch.rand(2000, 8, 1)
loader = DataLoader(TensorDataset(sequences, sequences[:, 0]), batch_size=64, shuffle=True)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.answer = nn.Linear(24, 1)

    def forward(self, x):
        return self.answer(self.lstm(x)[0][:, -1])


net = Memory()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(15):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))
