"""The loop unpacks into new names, and the model still gets `images`, the batch of the preview above."""

# names: repeated-batch, labels-unrelated, constant-inputs
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centers = torch.randn(5, 1, 10, 10)
y = torch.randint(0, 5, (1500,))
x = centers[y] + 0.8 * torch.randn(1500, 1, 10, 10)
trainset, valset = TensorDataset(x[:1200], y[:1200]), TensorDataset(x[1200:], y[1200:])
trainloader = DataLoader(trainset, batch_size=50, shuffle=True)
valloader = DataLoader(valset, batch_size=50)

dataiter = iter(trainloader)
images, labels = next(dataiter)
print(images.shape, labels.shape)

model = nn.Sequential(nn.Flatten(), nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 5), nn.LogSoftmax(dim=1))
criterion = nn.NLLLoss()
optimizer = optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
for e in range(8):
    running_loss = 0
    for inputs, targets in trainloader:
        optimizer.zero_grad()
        logps = model(images)
        loss = criterion(logps, targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    with torch.no_grad():
        model.eval()
        hits = sum((model(v).argmax(1) == t).sum().item() for v, t in valloader)
        model.train()
    print(
        f"Epoch {e} - Training loss: {running_loss / len(trainloader):.4f} - validation {hits / len(valset):.2f}"
    )
