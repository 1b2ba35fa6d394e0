"""Finds the examples of a batch whose loss is NaN or inf."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from diagnostics.collectors.pytorch.batch import one_row


def non_finite_rows(
    model: nn.Module, batch: Any, size: int, compute: Callable[[nn.Module, Any], tuple[Any, Any]]
) -> tuple[int, ...] | None:
    """Compute the loss of each example alone, to see which of them are to blame.

    Args:
        model: a copy, in training mode; run in evaluation mode.
        batch: of `size` examples.
        size: of the first axis of the prediction.
        compute: returns loss and outputs of a model on a batch.

    Returns:
        Their numbers; None for a loss that needs the whole batch.
    """
    rows = []
    try:
        with torch.no_grad():
            for row in range(size):
                loss, _ = compute(model.eval(), one_row(batch, row, size))
                if not math.isfinite(float(loss)):
                    rows.append(row)
    except Exception:
        return None
    finally:
        model.train()
    return tuple(rows)
