"""skorch's NeuralNetClassifier in a scikit-learn pipeline, with its default loss on probabilities' logarithms.

python skorch_classifier.py
"""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from torch import nn

torch.manual_seed(0)
X, y = make_classification(800, n_features=20, n_informative=10, n_classes=3, random_state=0)
X, y = X.astype(np.float32), y.astype(np.int64)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)


class MyModule(nn.Module):
    def __init__(self, num_units=32):
        super().__init__()
        self.dense0 = nn.Linear(20, num_units)
        self.nonlin = nn.ReLU()
        self.dropout = nn.Dropout(0.1)
        self.dense1 = nn.Linear(num_units, num_units)
        self.output = nn.Linear(num_units, 3)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, X, **kwargs):
        X = self.nonlin(self.dense0(X))
        X = self.dropout(X)
        X = self.nonlin(self.dense1(X))
        X = self.softmax(self.output(X))
        return X


net = NeuralNetClassifier(
    MyModule,
    max_epochs=15,
    lr=0.1,
    batch_size=64,
    iterator_train__shuffle=True,
    verbose=0,
)
pipe = Pipeline([("scale", StandardScaler()), ("net", net)])
pipe.fit(X_train, y_train)
model, optimizer = net.module_, net.optimizer_
print(f"train_loss={net.history[-1, 'train_loss']:.6f}")
print(f"valid_acc={net.history[-1, 'valid_acc']:.4f}")
print(f"test_acc={pipe.score(X_test, y_test):.4f}")
