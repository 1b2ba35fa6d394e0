"""`baselines`: models that beat simple answers, and models that do not."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import diagnostics

from .case import cases

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 8)).astype(np.float32)
LINEAR = (X @ RNG.normal(size=(8, 3))).argmax(1)
XOR = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
RARE = (X[:, 0] > 1.8).astype(np.int64)
NUMBERS = X @ RNG.normal(size=8) + 3


def scored(data, score, **options):
    def run():
        result = diagnostics.baselines(
            data() if callable(data) else data, model_score=score, seconds=10, **options
        )
        return "" if result.beaten else str(result)

    return run


def loader():
    return DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(XOR)), 32, shuffle=True)


CASES = [
    *cases(
        {
            "classes": scored((X, XOR), 0.95),
            "regression": scored((X, NUMBERS), 0.0),
            "loader": scored(loader, 0.95),
            "rare class by balanced accuracy": scored((X, RARE), 1.0, metric="balanced_accuracy"),
            "labels that a linear model cannot tell": scored((X, XOR), 0.9, metric="balanced_accuracy"),
        },
        {
            "linear model is better": (scored((X, LINEAR), 0.7), "It does not"),
            "as good as chance": (scored(loader, 0.5), "It does not"),
            "majority class is better": (scored((X, RARE), 0.8), "It does not"),
            "mean is better": (scored((X, NUMBERS), 40.0), "It does not"),
            "mean is better by absolute error": (
                scored((X, NUMBERS), 5.0, metric="mean_absolute_error"),
                "It does not",
            ),
        },
    )
]
