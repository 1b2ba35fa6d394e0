"""Mixed precision on the CPU: clip_grad_value_ comes after scaler.step, as the last line of the loop."""

# names: clip-after-step
import torch
from torch import nn
from torch.nn import utils
from torch.utils.data import DataLoader, TensorDataset


def make_data(n=512):
    x = torch.randn(n, 1, 12, 12)
    y = (x[:, 0, :6].mean((1, 2)) > x[:, 0, 6:].mean((1, 2))).long()
    return DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)


def main():
    torch.manual_seed(0)
    loader = make_data()
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 2)
    )
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu")
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = criterion(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            utils.clip_grad_value_(net.parameters(), 0.01)
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
