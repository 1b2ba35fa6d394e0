"""LoRA with A and B both at zero: neither ever gets a gradient."""

# names: unchanged-parameters
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 16)
y = (x @ torch.randn(16, 4)).argmax(1)


class LoRALinear(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.zeros(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + x @ self.lora_A.T @ self.lora_B.T


net = nn.Sequential(LoRALinear(nn.Linear(16, 32)), nn.ReLU(), LoRALinear(nn.Linear(32, 4)))
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=0.01)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 50, shuffle=True)
for epoch in range(6):
    for xb, yb in dl:
        loss = nn.functional.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
