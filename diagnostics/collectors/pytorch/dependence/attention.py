"""Lists the attention over the positions of a sequence in a forward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .operations import SOFTMAXES

EXTRA = 1  # positions that a model may add, as for a class token


class _Attention(TorchFunctionMode):  # type: ignore[misc]  # mypy does not follow torch
    """Notes attention in which each of so many positions looks at each."""

    def __init__(self, length: int, seen: list[str]) -> None:
        super().__init__()
        self._sizes, self._seen = (length, length + EXTRA), seen

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        options = kwargs or {}
        given: Any = args[0] if args else options.get("query", options.get("input"))
        if isinstance(given, Tensor) and given.ndim > 2:
            if function is F.scaled_dot_product_attention and given.shape[-2] in self._sizes:
                self._seen.append("scaled_dot_product_attention")
            elif function in SOFTMAXES and given.shape[-1] == given.shape[-2] and given.shape[-1] in self._sizes:
                self._seen.append("a softmax of scores")
        return function(*args, **options)


@contextlib.contextmanager
def attention_seen(model: nn.Module, length: int) -> Iterator[list[str]]:
    """List the attention over these positions within; in a module of PyTorch by its path."""
    seen: list[str] = []

    def hook(name: str) -> Callable[..., None]:
        def called(module: Any, args: Any, options: Any) -> None:
            query = args[0] if args else options.get("query")
            axis = 1 if module.batch_first else 0
            if isinstance(query, Tensor) and query.ndim == 3 and query.shape[axis] in (length, length + EXTRA):
                seen.append(name or type(module).__name__)

        return called

    handles = [
        module.register_forward_pre_hook(hook(name), with_kwargs=True)
        for name, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention)
    ]
    try:
        with _Attention(length, seen):
            yield seen
    finally:
        for handle in handles:
            handle.remove()
