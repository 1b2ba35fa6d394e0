"""Finds scores of a cross entropy that are cosines times a constant, and so cannot lie far apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.pytorch.saved_tensors import saved
from diagnostics.facts.loss import CosineScores

UNIT = 1e-3  # by which the length of a vector may differ from 1
LARGEST = 2**22  # numbers of a matrix whose vectors are measured


def cosine_scores(nodes: Iterable[Any]) -> CosineScores | None:
    """Describe the scores of a cross entropy in a graph that are products of unit vectors times a constant.

    Before the backward pass, which frees what is looked at. A factor that is learned may grow.
    """
    for node in nodes:
        if _kind(node) != "NllLoss" or not node.next_functions:
            continue
        softmax = node.next_functions[0][0]
        if _kind(softmax) != "LogSoftmax":
            continue
        scores, (factor, product) = saved(softmax, "result"), _without_factor(_before(softmax))
        if scores is not None and factor is not None and _kind(product) == "Mm" and _are_unit(product):
            return CosineScores(int(scores.shape[1]), factor)
    return None


def _without_factor(node: Any) -> tuple[float | None, Any]:
    """Return the constant that scores were multiplied by, and the node before it; None if it is no constant."""
    if _kind(node) not in ("Mul", "Div"):
        return 1.0, node
    sides = [saved(node, "self"), saved(node, "other")]  # what the gradient of the other side needs
    known = [place for place, side in enumerate(sides) if isinstance(side, Tensor)]
    if len(known) != 1 or (_kind(node) == "Div" and known != [1]):
        return None, node
    constant = sides[known[0]]
    if constant.numel() != 1 or constant.requires_grad or not (factor := abs(float(constant.detach()))):
        return None, node
    return (factor if _kind(node) == "Mul" else 1 / factor), _before(node, 1 - known[0])


def _are_unit(product: Any) -> bool:
    """Whether both sides of a product of matrices hold vectors of length 1."""
    rows, columns = saved(product, "self"), saved(product, "mat2")
    if not isinstance(rows, Tensor) or not isinstance(columns, Tensor):
        return False
    if max(rows.numel(), columns.numel()) > LARGEST:
        return False
    with torch.no_grad():
        lengths = torch.cat([rows.float().norm(dim=1), columns.float().norm(dim=0)])
        return bool(((lengths - 1).abs() <= UNIT).all())


def _before(node: Any, side: int = 0) -> Any:
    """Return the node before this one, on one side, past transpositions."""
    node = node.next_functions[side][0]
    while _kind(node) in ("T", "Transpose", "Permute"):
        node = node.next_functions[0][0]
    return node


def _kind(node: Any) -> str:
    return re.sub(r"Backward\d*$", "", type(node).__name__)
