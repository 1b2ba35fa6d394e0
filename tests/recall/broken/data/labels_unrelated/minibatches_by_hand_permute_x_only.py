"""Every epoch the rows are permuted for x, and the labels are sliced in the old order.

After https://github.com/DrexelChatbotGroup/DrexelChatbot/issues/15
"""

# names: labels-unrelated, not-learning
import argparse

import numpy as np
import torch
import torch.nn as nn


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.fc2 = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def main():
    args = get_args()
    np.random.seed(3)
    torch.manual_seed(3)
    x = np.random.randn(1600, 12).astype(np.float32)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int64) + (x[:, 3] > 0.5)
    x_train, y_train = torch.from_numpy(x[:1280]), torch.from_numpy(y[:1280])
    x_test, y_test = torch.from_numpy(x[1280:]), torch.from_numpy(y[1280:])

    net = Net(12, 64, 3)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        net.train()
        perm = torch.randperm(x_train.size(0))
        running_loss = 0.0
        for i in range(0, x_train.size(0), args.batch_size):
            idx = perm[i : i + args.batch_size]
            batch_x, batch_y = x_train[idx], y_train[i : i + args.batch_size]
            opt.zero_grad()
            loss = loss_fn(net(batch_x), batch_y)
            loss.backward()
            opt.step()
            running_loss += loss.item() * len(idx)
        net.eval()
        with torch.no_grad():
            acc = (net(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch} loss {running_loss / len(x_train):.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
