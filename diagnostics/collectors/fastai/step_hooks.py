"""Gives fastai's own optimizers hooks before and after a step, as PyTorch's have.

``fastai.optimizer.Optimizer`` is no `torch.optim.Optimizer`, and has no hooks. `OptimWrapper` holds one of
PyTorch's, and needs none of this.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch.utils.hooks import RemovableHandle

from diagnostics.collectors.isolation.patching import Patches

Hook = Callable[..., Any]
BEFORE, AFTER = "register_step_pre_hook", "register_step_post_hook"


class StepHooks:
    """The hooks of all optimizers of a class, until `close`; none of a class that has hooks already.

    Args:
        kind: ``fastai.optimizer.Optimizer``.
        made: called with each optimizer that is made, which has no parameters yet.
        before: called with an optimizer before each step, and before the hooks of its own.
        after: the same after each step.
    """

    def __init__(
        self,
        kind: type,
        made: Hook = lambda _: None,
        before: Hook = lambda _: None,
        after: Hook = lambda _: None,
    ) -> None:
        self._kind, self._patches = kind, Patches()
        self._first = before, after
        # By the attributes of an optimizer, which a twin of it shares.
        self._own: tuple[dict[int, OrderedDict[int, Hook]], ...] = {}, {}
        self._given = not hasattr(kind, BEFORE)
        if self._given:
            self._patches.before(kind, "__init__", lambda optimizer, *_, **__: made(optimizer))
            self._patches.around(kind, "step", self._observed)
            for place, name in enumerate((BEFORE, AFTER)):
                setattr(kind, name, self._registering(place))

    def close(self) -> None:
        """Leave the class as it was."""
        if self._given:
            self._given = False
            self._patches.undo()
            for name in (BEFORE, AFTER):
                delattr(self._kind, name)

    def _observed(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def observed(optimizer: Any, *arguments: Any, **options: Any) -> Any:
            self._run(0, optimizer)
            result = step(optimizer, *arguments, **options)
            self._run(1, optimizer)
            return result

        return observed

    def _run(self, place: int, optimizer: Any) -> None:
        self._first[place](optimizer)
        for hook in [*self._own[place].get(id(vars(optimizer)), {}).values()]:
            hook(optimizer, (), {})

    def _registering(self, place: int) -> Callable[[Any, Hook], RemovableHandle]:
        def register(optimizer: Any, hook: Hook) -> RemovableHandle:
            hooks = self._own[place].setdefault(id(vars(optimizer)), OrderedDict())
            handle = RemovableHandle(hooks)
            hooks[handle.id] = hook
            return handle

        return register
