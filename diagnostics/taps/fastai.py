"""The functions of fastai whose calls by a script are observed, and hooks on its own optimizers.

``fastai.optimizer.Optimizer`` is no `torch.optim.Optimizer`, and has no hooks before and after a step.
`OptimWrapper` holds one of PyTorch's, and needs none of this.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch.utils.hooks import RemovableHandle

from diagnostics.collectors.isolation.recording import is_recorded

from .tap import Tap

Hook = Callable[..., Any]
BEFORE, AFTER = "register_step_pre_hook", "register_step_post_hook"


class _OptimizerSteps(Tap):
    """``Optimizer.step``. While there is a subscriber, optimizers have methods to hook them, as those of PyTorch.

    `before` and `after` have the optimizer, and are told before its hooks. Nothing happens in a release whose
    optimizers have hooks already.
    """

    def __init__(self) -> None:
        super().__init__("step", "fastai.optimizer:Optimizer")
        # By the attributes of an optimizer, which a twin of it shares.
        self._hooks: tuple[dict[int, OrderedDict[int, Hook]], ...] = {}, {}
        self._hooked: list[type] = []

    def attach(self) -> None:
        self._hooked = [kind for kind in self.owners() if not hasattr(kind, BEFORE)]
        for kind in self._hooked:
            super().attach()
            for place, name in enumerate((BEFORE, AFTER)):
                setattr(kind, name, self._registering(place))

    def detach(self) -> None:
        super().detach()
        while self._hooked:
            kind = self._hooked.pop()
            for name in (BEFORE, AFTER):
                delattr(kind, name)

    def _make(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        steps, turn = self, self._turn

        def step(optimizer: Any, *arguments: Any, **options: Any) -> Any:
            if steps._turn is not turn:
                return plain(optimizer, *arguments, **options)
            if not is_recorded():
                steps.before.tell(optimizer)
            steps._run(0, optimizer)
            result = plain(optimizer, *arguments, **options)
            if not is_recorded():
                steps.after.tell(optimizer)
            steps._run(1, optimizer)
            return result

        return step

    def _run(self, place: int, optimizer: Any) -> None:
        for hook in [*self._hooks[place].get(id(vars(optimizer)), {}).values()]:
            hook(optimizer, (), {})

    def _registering(self, place: int) -> Callable[[Any, Hook], RemovableHandle]:
        def register(optimizer: Any, hook: Hook) -> RemovableHandle:
            hooks = self._hooks[place].setdefault(id(vars(optimizer)), OrderedDict())
            handle = RemovableHandle(hooks)
            hooks[handle.id] = hook
            return handle

        return register


optimizer_init = Tap("__init__", "fastai.optimizer:Optimizer")
optimizer_step = _OptimizerSteps()
lr_find = Tap("lr_find", "fastai.callback.schedule:Learner")
