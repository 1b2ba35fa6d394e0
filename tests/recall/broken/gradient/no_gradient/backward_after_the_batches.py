"""loss.backward() is indented too little: it runs once an epoch, after the loop over the batches."""

# names: no-gradient, unchanged-parameters
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(960, 14)
labels = inputs[:, :4].argmax(1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(14, 40), torch.nn.Tanh(), torch.nn.Linear(40, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        optimizer.step()
    loss.backward()
    print(f"epoch {epoch + 1}: {loss.item():.3f}")
