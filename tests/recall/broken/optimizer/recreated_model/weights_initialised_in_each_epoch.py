"""The weights are initialised inside the loop over epochs, before the first batch of each."""

# names: recreated-model, not-learning, overfitting
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(5)
features, kinds = load_wine(return_X_y=True)
features = StandardScaler().fit_transform(features)
X_train, X_test, y_train, y_test = train_test_split(features, kinds, test_size=0.3, random_state=5)
X_train, X_test = (torch.tensor(part, dtype=torch.float32) for part in (X_train, X_test))
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(40):
    model.apply(init_weights)
    model.train()
    for rows in torch.randperm(len(X_train)).split(16):
        optimizer.zero_grad()
        loss = criterion(model(X_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(X_test).argmax(1) == y_test).float().mean()
    print(epoch, loss.item(), accuracy.item())
