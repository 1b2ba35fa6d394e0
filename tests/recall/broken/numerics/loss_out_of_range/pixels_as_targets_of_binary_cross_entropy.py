"""An autoencoder: sigmoid and binary cross entropy, and pixels from 0 to 255."""

# names: loss-out-of-range, targets-out-of-reach
import torch
from torch import nn

torch.manual_seed(0)
images = torch.randint(0, 256, (256, 64)).float()
model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(30):
    for batch in images.split(32):
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch / 255), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
