"""Finds the module that `training_step` calls, which is where forward passes are seen.

That is the LightningModule where it calls ``self(x)``, or one of its parts where it calls ``self.net(x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from diagnostics.collectors.isolation.recording import is_recorded
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.taps import torch as taps

REDIRECTED = "wrapped_forward"  # Lightning's forward within a wrapper such as DDP's, which calls training_step


class CalledPart(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    """A LightningModule reduced to the part that is called, whose parameters have the names that it gives them.

    Hooks that are put on it are put on the part.

    Args:
        path: of the part in the module; empty for the module itself.
        part: the part.
        hooked: whether to put them on; otherwise no forward pass is seen.
    """

    def __init__(self, path: str, part: nn.Module, hooked: bool = True) -> None:
        super().__init__()
        self._modules[path] = part  # `add_module` allows no dot
        self._redirected: list[bool] = []  # of the calls that are running
        self._hooked = hooked

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the part, such as the configuration of a transformers model."""
        modules = vars(self).get("_modules")
        if not modules:
            raise AttributeError(name)
        return modules[name] if name in modules else getattr(next(iter(modules.values())), name)

    def get_submodule(self, target: str) -> nn.Module:
        """Return a module by its name, which may begin with a path of several words."""
        found: nn.Module = dict(self.named_modules())[target]
        return found

    @property
    def part(self) -> nn.Module:
        """The part."""
        return next(iter(self._modules.values()))

    @property
    def training(self) -> bool:
        """Whether the part is in training mode."""
        modules = vars(self).get("_modules")
        return bool(next(iter(modules.values())).training) if modules else True

    @training.setter
    def training(self, mode: bool) -> None:
        """Ignore it: `train` sets the mode of the part as well."""

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """Call the part."""
        return self.part(*arguments, **options)

    def register_forward_pre_hook(self, hook: Any, **options: Any) -> Any:
        """Put a hook on the part, to run before each call of `forward` itself."""
        return self.part.register_forward_pre_hook(_Filtered(hook, self._begins), **options)

    def register_forward_hook(self, hook: Any, **options: Any) -> Any:
        """Put a hook on the part, to run after each call of `forward` itself."""
        return self.part.register_forward_hook(_Filtered(hook, self._ends), **options)

    def _begins(self, module: nn.Module) -> bool:
        if is_redirected(module):
            self._redirected.clear()  # of a step that failed
            self._redirected.append(True)
            return False
        self._redirected.append(False)
        return self._hooked

    def _ends(self, _module: nn.Module) -> bool:
        redirected = self._redirected.pop() if self._redirected else False
        return self._hooked and not redirected


class _Filtered:
    """A hook that runs only if it is asked for; a copy of it does nothing."""

    def __init__(self, hook: Callable[..., Any], wanted: Callable[[nn.Module], bool]) -> None:
        self._hook: Callable[..., Any] | None = hook
        self._wanted: Callable[[nn.Module], bool] | None = wanted

    def __call__(self, module: nn.Module, *arguments: Any) -> None:
        if self._hook is not None and self._wanted is not None and self._wanted(module):
            self._hook(module, *arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_hook": None, "_wanted": None}


def is_redirected(module: nn.Module) -> bool:
    """Whether a call of this LightningModule is a wrapper's, and runs `training_step`."""
    return getattr(vars(module).get("forward"), "__name__", "") == REDIRECTED


def part_of(module: nn.Module, path: str, part: nn.Module, hooked: bool = True) -> nn.Module:
    """Return a `CalledPart` that is named as the module is."""
    named = type(type(module).__name__, (CalledPart,), {})
    made: nn.Module = named(path, part, hooked)
    return made


class FirstCall:
    """Waits for the first call of a part with trainable parameters, and hands over what to watch.

    Args:
        module: the LightningModule.
        wrapped: whether a strategy calls it through a wrapper.
        deliver: called once, before that call runs.
    """

    def __init__(self, module: nn.Module, wrapped: bool, deliver: Callable[[nn.Module], None]) -> None:
        self._module, self._wrapped, self._deliver = module, wrapped, deliver
        self._paths = {id(part): path for path, part in module.named_modules() if _trainable(part)}
        self._waiting = True
        self._unsubscribe = taps.module_call.before.subscribe(self._observed)

    def close(self) -> None:
        """Wait no longer."""
        self._waiting = False
        self._unsubscribe()

    def none_was_seen(self) -> None:
        """Hand over the module itself: `training_step` has called no part of it."""
        if self._waiting:
            self.close()
            self._deliver(self._whole())

    def _observed(self, call: taps.ModuleCall) -> None:
        call.on_inner.append(self._called)
        self._called(call.module)

    def _called(self, called: nn.Module, *_: Any) -> None:
        if self._waiting and id(called) in self._paths and self._is_of_the_loop(called):
            self.close()
            self._deliver(self._subject(called))

    def _is_of_the_loop(self, called: nn.Module) -> bool:
        if not torch.is_grad_enabled() or is_recorded():
            return False
        return not (called is self._module and is_redirected(called))

    def _whole(self) -> nn.Module:
        return part_of(self._module, "", self._module) if self._wrapped else self._module

    def _subject(self, called: nn.Module) -> nn.Module:
        """Return the part if it holds all that is trained; else the module, which calls others too."""
        if called is self._module or _trainable(self._module) - _trainable(called):
            return self._whole()
        if uncompiled(called) is not called:
            return called
        return part_of(self._module, self._paths[id(called)], called)


def _trainable(module: nn.Module) -> set[int]:
    return {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
