"""The `History` fields of a step of `fit`, on any backend."""

from __future__ import annotations

from typing import Any

import numpy as np

STEP_FIELDS: list[Any] = [
    ("steps", np.int64),
    ("losses", np.float64),
    ("loss_known", np.bool_),
    ("learning_rates", np.float64, (1,)),
    ("batch_fingerprints", np.uint64),
    ("batch_sizes", np.int64),
]


def sample_fields(layers: int) -> list[Any]:
    """Return the fields of a closer look, for `History`."""
    return [
        ("sampled_steps", np.int64),
        ("update_ratios", np.float32, (layers,)),
        ("weight_norms", np.float32, (layers,)),
        ("memory_bytes", np.float64),
    ]


def gradient_fields(layers: int) -> list[Any]:
    """Return the fields of the gradients of a step, for `History`."""
    return [
        ("gradient_norms", np.float32),
        ("layer_gradient_norms", np.float32, (layers,)),
        ("gradient_known", np.bool_),
    ]
