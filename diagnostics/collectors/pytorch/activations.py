"""Facts about a module's outputs: the prediction and the activation functions before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.saved_tensors import saved
from diagnostics.collectors.shared.arrays import MOSTLY, NEAR_BOUND, PROBABILITY_SUM
from diagnostics.facts.layers import ActivationFacts
from diagnostics.facts.pipeline import OutputFacts

from .losses import class_axis

# Functions with a lower and an upper bound, at which their gradient vanishes.
_BOUNDS: dict[type[nn.Module], tuple[float, float]] = {
    nn.Tanh: (-1.0, 1.0),
    nn.Sigmoid: (0.0, 1.0),
    nn.Hardtanh: (-1.0, 1.0),
    nn.Hardsigmoid: (0.0, 1.0),
}
_RELU_LIKE = (nn.ReLU, nn.ReLU6)


def output_facts(
    prediction: Tensor, target: Any, num_classes: int | None, last_activation: str | None
) -> OutputFacts:
    """Turn a prediction (n, ...) into facts."""
    values = prediction.detach().float()
    finite = values.isfinite()
    rows = finite.reshape(values.shape[0] if values.ndim else 1, -1)
    axis = class_axis(prediction, target) if isinstance(target, Tensor) else None
    sums_to_one = None
    if axis is not None:
        sums_to_one = bool((values >= 0).all() and ((values.sum(axis) - 1).abs() <= PROBABILITY_SUM).all())
    return OutputFacts(
        shape=tuple(prediction.shape),
        num_classes=num_classes,
        non_finite_rows=tuple((~rows.all(1)).nonzero().flatten().tolist()),
        lowest=float(values[finite].min()) if finite.any() else None,
        highest=float(values[finite].max()) if finite.any() else None,
        sums_to_one=sums_to_one,
        last_activation=last_activation,
    )


_FUNCTIONS = {
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "LogSoftmax": "logsoftmax",
    "Tanh": "tanh",
    "Relu": "relu",
    "Softplus": "softplus",
    "Exp": "exp",
    "Addmm": "linear",
    "Mm": "linear",
}
"""What a node of the graph computes, by its name without ``Backward0``."""

COSINE = "cosine_similarity"

_LAYOUT = frozenset(
    {"Alias", "Expand", "Permute", "Reshape", "Select", "Slice", "Squeeze", "T", "ToCopy", "Transpose"}
    | {"Unsqueeze", "UnsafeView", "View"}
)


def last_function(prediction: Tensor) -> str | None:
    """Name the function that computed a prediction, by its graph; None for one that is not in the table.

    Changes of shape and dtype are passed over.
    """
    return _function(_past_layout(prediction.grad_fn))


def function_before(prediction: Tensor) -> str | None:
    """Name the function whose result that last function was applied to, likewise."""
    node = _past_layout(prediction.grad_fn)
    return None if not node or not node.next_functions else _function(_past_layout(node.next_functions[0][0]))


def _function(node: Any) -> str | None:
    name = re.sub(r"Backward\d*$", "", type(node).__name__)
    return COSINE if name == "Sum" and _is_cosine(node) else _FUNCTIONS.get(name)


def _is_cosine(node: Any) -> bool:
    """Whether a sum is that of the products of two vectors, each divided by its norm."""
    product = _past_layout(node.next_functions[0][0])
    if product is None or not type(product).__name__.startswith("MulBackward"):
        return False
    return all(_is_normalised(_past_layout(side)) for side, _ in product.next_functions)


def _is_normalised(node: Any) -> bool:
    if node is None or not type(node).__name__.startswith("DivBackward"):
        return False
    divisor = node.next_functions[1][0]
    while type(divisor).__name__.startswith(("Expand", "Clone", "Clamp", "Unsqueeze", "Maximum")):
        divisor = divisor.next_functions[0][0]
    return type(divisor).__name__.startswith(("LinalgVectorNorm", "Norm"))


def _past_layout(node: Any) -> Any:
    while node is not None and re.sub(r"Backward\d*$", "", type(node).__name__).rstrip("0123456789") in _LAYOUT:
        node = node.next_functions[0][0]
    return node


def is_multiplied(prediction: Tensor) -> bool:
    """Whether a prediction was made by a single factor above 1, or a divisor below it, as cosines of a margin."""
    node = prediction.grad_fn
    name = re.sub(r"Backward\d*$", "", type(node).__name__)
    if name not in ("Mul", "Div"):
        return False
    sides = [saved(node, "self"), saved(node, "other")]
    factors = [float(side.detach()) for side in sides if isinstance(side, Tensor) and side.numel() == 1]
    return any(0 < factor < 1 if name == "Div" else factor > 1 for factor in factors)


def last_activation(model: nn.Module) -> str | None:
    """Name the function at the end of an `nn.Sequential`; of another module the order of layers is not known."""
    while isinstance(model, nn.Sequential) and (layers := list(model.children())):
        model = layers[-1]
    if isinstance(model, nn.Linear):
        return "linear"
    if isinstance(model, nn.Sigmoid | nn.Softmax | nn.LogSoftmax | nn.Tanh | nn.ReLU):
        return type(model).__name__.lower()
    return None


@contextmanager
def activations_seen(model: nn.Module) -> Iterator[list[ActivationFacts]]:
    """Collect what the activation modules of a copy give out while it runs, in order of execution.

    Functions called from `torch.nn.functional` have no module and are not seen.
    """
    seen: list[ActivationFacts] = []
    handles = []
    for name, module in model.named_modules():
        if has_bounds(module) or is_relu_like(module):

            def look(module: nn.Module, _inputs: Any, output: Any, name: str = name) -> None:
                if isinstance(output, Tensor) and output.ndim >= 2 and output.numel():
                    seen.append(_activation_facts(name, module, output.detach().float()))

            handles.append(module.register_forward_hook(look))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def has_bounds(module: nn.Module) -> bool:
    """Whether it is a function with a lower and an upper bound."""
    return type(module) in _BOUNDS


def is_relu_like(module: nn.Module) -> bool:
    """Whether it is a function that is exactly 0 on one side."""
    return isinstance(module, _RELU_LIKE)


def unit_count(module: nn.Module, output: Tensor) -> tuple[Tensor, int]:
    """Count the units of an activation module's output (n, ...) that are dead, or saturated if it has bounds.

    Returns:
        The count (), still where the output is; and the number of units.
    """
    if is_relu_like(module):
        return dead_count(output)
    units = _by_unit(output)
    low, high = _BOUNDS[type(module)]
    margin = NEAR_BOUND * (high - low)
    at_bound = torch.logical_or(units <= low + margin, units >= high - margin)
    return (at_bound.float().mean(0) >= MOSTLY).sum(), units.shape[1]


def dead_count(output: Tensor) -> tuple[Tensor, int]:
    """Count the units of a ReLU's output (n, ...) that are zero everywhere.

    Returns:
        The count (), still where the output is; and the number of units.
    """
    units = _by_unit(output)
    return (units == 0).all(0).sum(), units.shape[1]


def is_output_of_relu(value: Tensor) -> bool:
    """Whether a tensor of a graph comes straight from a ReLU, be it a module or a function."""
    name = type(value.grad_fn).__name__
    return name.startswith("ReluBackward") or (
        name.startswith("ClampBackward") and saved(value.grad_fn, "min") == 0
    )


def _by_unit(output: Tensor) -> Tensor:
    """Lay out as (positions, units): images carry their channels on axis 1, everything else has features last."""
    axis = 1 if output.ndim >= 4 else output.ndim - 1
    return output.movedim(axis, -1).reshape(-1, output.shape[axis])


def _activation_facts(name: str, module: nn.Module, output: Tensor) -> ActivationFacts:
    count, units = unit_count(module, output)
    dead, saturated = (int(count), 0) if is_relu_like(module) else (0, int(count))
    return ActivationFacts(name, type(module).__name__.lower(), units, dead, saturated)
