"""Finds recurrent layers whose first state is drawn at random in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.shared.dependence.subject import Unclear
from diagnostics.facts.dependence import RandomStateFacts

from .subject import Subject

DRAWS: dict[Any, str] = {
    torch.randn: "randn",
    torch.rand: "rand",
    torch.randn_like: "randn_like",
    torch.rand_like: "rand_like",
    torch.normal: "normal",
    Tensor.normal_: "normal_",
    Tensor.uniform_: "uniform_",
}
RECURRENT = (nn.RNNBase, nn.RNNCellBase)
MAX_DRAWS = 256  # draws kept during a run


def random_state(subject: Subject) -> RandomStateFacts | None:
    """Run the model twice in evaluation mode; return the state that was drawn, and how far the answers differ.

    None where no recurrent layer is given a state that was drawn and not computed: one that comes from other
    layers, as of a variational decoder, is a sample on purpose.

    Raises:
        Unclear: the answers are not finite, or of random shape.
        OutOfTime: the time is over.
    """
    layers = [(name, module) for name, module in subject.model.named_modules() if isinstance(module, RECURRENT)]
    if not layers:
        return None
    recorder, found = _Draws(), list[tuple[str, str]]()

    def given(name: str, kind: str) -> Callable[..., None]:
        def before(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
            state = options.get("hx", arguments[1] if len(arguments) > 1 else None)
            drawn = [recorder.drawn[key] for tensor in tensors(state) if (key := _key(tensor)) in recorder.drawn]
            if drawn:
                found.append((f"{name} ({kind})" if name else kind, drawn[0]))

        return before

    hooks = [
        module.register_forward_pre_hook(given(name, type(module).__name__), with_kwargs=True)
        for name, module in layers
    ]
    try:
        with subject.observed(lambda _: None, recorder):
            first = subject.ask(subject.inputs)
    finally:
        for hook in hooks:
            hook.remove()
        recorder.clear()
    if not found:
        return None
    change = first.change(subject.ask(subject.inputs, seed=1))
    if change != change or change == float("inf"):
        raise Unclear("the predictions are not finite, or their shape is random")
    spread = float(first.main.std(0, ddof=1).max()) if len(first.main) > 1 else 0.0
    return RandomStateFacts(found[0][0], found[0][1], change, spread, subject.target is not None)


class _Draws(TorchFunctionMode):  # type: ignore[misc]  # mypy does not follow torch
    """Records what is drawn at random.

    Attributes:
        drawn: the function that drew, by the memory that it drew into.
    """

    def __init__(self) -> None:
        super().__init__()
        self.drawn: dict[int, str] = {}
        self._kept: list[Tensor] = []  # so that no other tensor comes to lie there

    def clear(self) -> None:
        """Let go of all tensors."""
        self._kept.clear()

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Make a call, and record what it drew."""
        result = function(*args, **(kwargs or {}))
        if function in DRAWS and type(result) is Tensor and len(self._kept) < MAX_DRAWS:
            self._kept.append(result)
            self.drawn[_key(result)] = DRAWS[function]
        return result


def _key(tensor: Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())
