"""A recurrent model under a loss scaler; each gradient is cut to 0.1 before the scaler has divided it."""
# names: mixed-precision-misuse

import torch
from torch import nn

torch.manual_seed(2)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


series = torch.randint(0, 2, (800, 15, 1)).float()
label = (series.sum((1, 2)) > 7).long()
model = Counter()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=4096)
for epoch in range(4):
    for rows in torch.randperm(800).split(40):
        loss = nn.functional.cross_entropy(model(series[rows]), label[rows])
        opt.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        scaler.step(opt)
        scaler.update()
    print(epoch, round(loss.item(), 4))
