"""The gradient of a PyTorch model's answer by each position of a synthetic sequence."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.data import to_device
from diagnostics.collectors.pytorch.examine.model_copy import ModelCopy
from diagnostics.collectors.pytorch.model import check_runnable, device_of, uncompiled
from diagnostics.collectors.pytorch.state import kept
from diagnostics.collectors.shared.arrays import fields
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed
from diagnostics.errors import InvalidInput, typed_message, what
from diagnostics.facts.array import Array

SEED = 0


class TorchPositions:
    """Differentiates the last answer of a copy of a model by its input.

    Args:
        model: the user's; only copied.
        output: picks what is differentiated out of what the model returns; None for the last position, or all.
    """

    def __init__(self, model: nn.Module, output: Callable[[Any], Any] | None) -> None:
        self._model = uncompiled(model)
        self._output = output
        try:
            check_runnable(self._model)
            self._copy = ModelCopy(self._model, lambda: None, None).fresh().eval()
        except (StageFailed, CannotJudge) as reason:
            raise InvalidInput(f"through_time() cannot run the model: {reason}") from None
        for module in self._copy.modules():
            if isinstance(module, nn.RNNBase):  # cuDNN has no backward pass in eval mode
                module.train()
                module.dropout = 0.0

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Restore random states, gradients and buffers on leaving."""
        with kept((self._model,), self._model), own_warnings_ignored(), own_run():
            yield

    def of_array(self, array: Any) -> Tensor:
        """Convert an array of NumPy."""
        return torch.from_numpy(array)

    def profile(self, inputs: Any, length: int) -> Array:
        """Return float64 (length,): the norm of the gradient at each position.

        Args:
            inputs: a tensor (rows, length, ...) of floats, or of integers for a model that embeds them; or a dict
                with one such tensor.
            length: of its second axis.

        Raises:
            InvalidInput: the model cannot be run on this, or no gradient reaches the input.
        """
        inputs = to_device(copy.deepcopy(inputs), device_of(self._model))
        embedded: list[Tensor] = []
        floats = [
            value for value in fields(inputs).values() if isinstance(value, Tensor) and _spans(value, length)
        ]
        leaves = [value.requires_grad_() for value in floats if value.is_floating_point()]
        hooks = [] if leaves else self._on_embeddings(embedded, length)
        try:
            outputs = self._copy(**inputs) if isinstance(inputs, dict) else self._copy(inputs)
            answer = self._answer(outputs, length)
            weights = torch.randn(answer.shape, generator=torch.Generator().manual_seed(SEED)).to(answer)
            leaves = leaves or embedded[:1]
            if not leaves:
                raise InvalidInput(
                    f"through_time() found no input of {length} positions to differentiate by: it takes floats of "
                    "shape (rows, positions, features), or integers (rows, positions) that an nn.Embedding turns "
                    "into such."
                )
            if not answer.requires_grad:
                raise InvalidInput(
                    "through_time() got an output without a gradient: the model detaches it, or runs under "
                    "no_grad."
                )
            (gradient,) = torch.autograd.grad((answer * weights).sum(), leaves[:1], allow_unused=True)
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(
                f"through_time() ran the model on a sequence of {length}, and that raised {typed_message(error)}."
            ) from error
        finally:
            for hook in hooks:
                hook.remove()
        if gradient is None:
            gradient = torch.zeros_like(leaves[0])
        norms: Array = gradient.detach().double().transpose(0, 1).reshape(length, -1).norm(dim=1).cpu().numpy()
        return norms

    def _answer(self, outputs: Any, length: int) -> Tensor:
        if self._output is not None:
            answer = self._output(outputs)
            if not isinstance(answer, Tensor):
                raise InvalidInput(
                    f"through_time(output=...) returned {what(answer)}. It takes a function that picks "
                    "a tensor out of what the model returns."
                )
            return answer
        found = prediction_in(outputs)
        if found is None:
            raise InvalidInput(
                f"through_time() found no float tensor in what the model returned, {what(outputs)}. Pass output=, "
                "a function that picks the prediction."
            )
        return found[:, -1] if found.ndim > 2 and found.shape[1] == length else found

    def _on_embeddings(self, found: list[Tensor], length: int) -> list[Any]:
        def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor | None:
            if found or output.ndim != 3 or output.shape[1] != length:
                return None
            found.append(output.detach().requires_grad_())
            return found[0]

        return [
            module.register_forward_hook(keep)
            for module in self._copy.modules()
            if isinstance(module, nn.Embedding)
        ]


def _spans(value: Tensor, length: int) -> bool:
    return bool(value.ndim > 1 and value.shape[1] == length)
