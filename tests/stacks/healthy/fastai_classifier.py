"""fastai's Learner on generated data: the search for a rate, then one cycle, as its documentation has it.

python fastai_classifier.py
"""

import tempfile

import numpy as np
import torch
from fastai.basics import CrossEntropyLossFlat, DataLoaders, Learner, accuracy, set_seed
from fastai.callback.progress import ProgressCallback
from fastai.callback.schedule import minimum
from torch import nn
from torch.utils.data import TensorDataset

FEATURES, CLASSES = 20, 3

set_seed(0, reproducible=True)
rng = np.random.default_rng(0)
x = rng.normal(size=(800, FEATURES)).astype(np.float32)
y = (x @ rng.normal(size=(FEATURES, CLASSES))).argmax(1)
train_set = TensorDataset(torch.tensor(x[:640]), torch.tensor(y[:640]))
valid_set = TensorDataset(torch.tensor(x[640:]), torch.tensor(y[640:]))

dls = DataLoaders.from_dsets(train_set, valid_set, bs=32, num_workers=0)
model = nn.Sequential(
    nn.Linear(FEATURES, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Linear(64, CLASSES),
)
with tempfile.TemporaryDirectory() as folder:
    learn = Learner(dls, model, loss_func=CrossEntropyLossFlat(), metrics=accuracy, path=folder)
    learn.remove_cb(ProgressCallback)
    learn.logger = lambda values: None
    found = learn.lr_find(suggest_funcs=minimum, show_plot=False)
    print(f"suggested_lr={found.minimum:.6f}")
    learn.fit_one_cycle(5, 1e-2)
optimizer = learn.opt
train_loss, valid_loss, score = learn.recorder.values[-1]
print(f"train_loss={train_loss:.6f}")
print(f"valid_loss={valid_loss:.6f}")
print(f"accuracy={score:.4f}")
