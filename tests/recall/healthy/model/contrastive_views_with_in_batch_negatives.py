"""SimCLR: the loss compares all rows of a batch, in a notebook exported to a script."""

# %% imports
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)

# %% data
proto = torch.randn(8, 32)


def two_views(n=64):
    y = torch.randint(8, (n,))
    x = proto[y] + 0.5 * torch.randn(n, 32)
    return x + 0.3 * torch.randn_like(x), x * (torch.rand_like(x) > 0.2), y


# %% model
encoder = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
projector = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))


def nt_xent(a, b, t=0.3):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.t() / t
    sim.fill_diagonal_(-1e9)
    n = len(a)
    return F.cross_entropy(sim, torch.cat([torch.arange(n) + n, torch.arange(n)]))


# %% train
optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=2e-3)
for step in range(300):
    a, b, _ = two_views()
    loss = nt_xent(projector(encoder(a)), projector(encoder(b)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        print(step, loss.item())

# %% nearest neighbours
encoder.eval()
with torch.no_grad():
    a, b, y = two_views(400)
    za, zb = F.normalize(encoder(a), dim=1), F.normalize(encoder(b), dim=1)
    print("same class nearest:", (y[(za @ zb.t()).argmax(1)] == y).float().mean().item())
