"""Customer segments are read from the wrong part of an id; the loop draws rows of tensors."""

# names: single-class-labels
import torch
from torch import nn

torch.manual_seed(0)
segments = torch.randint(5, (900,)).tolist()
ids = [f"2:{number:04d}:{segment}" for number, segment in enumerate(segments)]
x = torch.randn(900, 14) + 2 * nn.functional.one_hot(torch.tensor(segments), 14)
y = torch.tensor([int(each.split(":")[0]) for each in ids])
model = nn.Sequential(nn.Linear(14, 32), nn.Tanh(), nn.Linear(32, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(240):
    rows = torch.randint(900, (30,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        print(step, loss.item())
