"""Values learned from their own estimates: a slowly moving copy of the network, detached, gives the targets.

Fitted Q-iteration on a walk along a line of ten places with a reward at its right end. The module holds both
networks, so that the loss is one call; the copy asks for no gradient.

$ python tests/healthy/pytorch/target_network.py
"""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PLACES, ACTIONS = 10, 2  # left and right
DISCOUNT, SLOWLY = 0.9, 0.05
EPOCHS = 30


class Walk(Dataset):
    """Dicts of a place and the next one, one-hot (10,), an action, and a reward: 1 at the right end."""

    def __init__(self, rows, seed):
        generator = torch.Generator().manual_seed(seed)
        self.place = torch.randint(PLACES, (rows,), generator=generator)
        self.action = torch.randint(ACTIONS, (rows,), generator=generator)

    def __len__(self):
        return len(self.place)

    def __getitem__(self, index):
        after = (self.place[index] + 2 * self.action[index] - 1).clamp(0, PLACES - 1)
        one_hot = torch.eye(PLACES)
        return {
            "place": one_hot[self.place[index]],
            "action": self.action[index],
            "reward": (after == PLACES - 1).float(),
            "after": one_hot[after],
        }


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(PLACES, 32), nn.ReLU(), nn.Linear(32, ACTIONS))
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    def forward(self, place, action, reward, after):
        value = self.online(place).gather(1, action[:, None])[:, 0]
        expected = reward + DISCOUNT * self.target(after).max(dim=1).values.detach()
        return {"loss": nn.functional.mse_loss(value, expected), "value": value}

    @torch.no_grad()
    def follow(self):
        """Move the copy a little towards the network."""
        for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
            slow.lerp_(fast, SLOWLY)


def build():
    torch.manual_seed(0)
    model = Values()
    loader = DataLoader(Walk(512, seed=1), batch_size=32, shuffle=True)
    return model, loader, None, torch.optim.Adam(model.online.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    right = DISCOUNT ** torch.arange(PLACES).flip(0).sub(1).clamp(min=0) / (1 - DISCOUNT)

    @torch.no_grad()
    def error():
        """Return the mean squared error of the values of going right, which are known here."""
        return (model.online(torch.eye(PLACES))[:, 1] - right).square().mean().item()

    before = error()
    for _ in range(EPOCHS):
        for batch in loader:
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()
            model.follow()
    return {"loss_before": before, "loss_after": error()}


if __name__ == "__main__":
    print(train(*build()))
