"""skorch's NeuralNetRegressor on standardised targets, with Adam, early stopping and cross-validation.

python skorch_regressor.py
"""

import numpy as np
import torch
from sklearn.datasets import make_regression
from sklearn.model_selection import cross_val_score
from skorch import NeuralNetRegressor
from skorch.callbacks import EarlyStopping
from torch import nn

torch.manual_seed(0)
X, y = make_regression(600, n_features=12, n_informative=6, noise=5.0, random_state=0)
X = X.astype(np.float32)
y = ((y - y.mean()) / y.std()).astype(np.float32).reshape(-1, 1)


class Regressor(nn.Module):
    def __init__(self, num_units=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, num_units), nn.ReLU(), nn.Linear(num_units, 1))

    def forward(self, X):
        return self.layers(X)


net = NeuralNetRegressor(
    Regressor,
    max_epochs=15,
    lr=0.01,
    batch_size=32,
    optimizer=torch.optim.Adam,
    iterator_train__shuffle=True,
    callbacks=[EarlyStopping(patience=5)],
    verbose=0,
)
net.fit(X, y)
model, optimizer = net.module_, net.optimizer_
print(f"valid_loss={net.history[-1, 'valid_loss']:.6f}")
print("scores=" + " ".join(f"{score:.4f}" for score in cross_val_score(net, X, y, cv=3, scoring="r2")))
