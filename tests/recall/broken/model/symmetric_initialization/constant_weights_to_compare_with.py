"""Notebook cell on initialisation: every weight is the constant 0.5, and nobody changes it for the real run.

After https://github.com/microsoft/vscode-python/issues/5069
"""

# names: symmetric-initialization

# In[1]:
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(0)
torch.manual_seed(0)


# In[2]:
class Net(nn.Module):
    def __init__(self, hidden_1=64, hidden_2=32, constant_weight=None):
        super().__init__()
        self.fc1 = nn.Linear(36, hidden_1)
        self.fc2 = nn.Linear(hidden_1, hidden_2)
        self.fc3 = nn.Linear(hidden_2, 5)
        if constant_weight is not None:
            for m in self.modules():
                if isinstance(m, nn.Linear):
                    nn.init.constant_(m.weight, constant_weight)
                    nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = x.view(-1, 36)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


# In[3]:
y = np.random.randint(0, 5, 1500)
prototypes = np.random.rand(5, 6, 6)
x = prototypes[y] + 0.3 * np.random.randn(1500, 6, 6)
loader = DataLoader(
    TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y)), batch_size=50, shuffle=True
)

# In[4]:
model = Net(constant_weight=0.5)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

# In[5]:
for epoch in range(10):
    train_loss, hits = 0, 0
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        hits += (output.argmax(1) == target).sum().item()
    print("epoch", epoch, "loss", train_loss / len(loader), "accuracy", hits / 1500)
