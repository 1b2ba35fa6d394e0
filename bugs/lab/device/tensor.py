"""The tensors of the simulated device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import torch

from bugs.lab.device.execution import Place
from bugs.lab.device.memory import Block

if TYPE_CHECKING:
    from bugs.lab.device.engine import Engine

NAME: Final = "simulated"


def unseen(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let an error that the function raises end in its caller's line, as if it were a kernel without lines.

    A bare `raise` adds no line of its own to the traceback that it finds.
    """

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception as error:
            error.__traceback__ = None
            raise

    return called


class SimulatedTensor(torch.Tensor):  # type: ignore[misc]
    """A tensor whose values are on the simulated device; the host knows its layout alone."""

    block: Block  # of the storage, shared with the views of this tensor
    place: Place  # of this tensor in it
    engine: ClassVar[Engine | None] = None  # there is one device, once it has been asked for

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    @unseen
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Launch an operation."""
        assert cls.engine is not None
        return cls.engine.call(func, args, kwargs or {})

    @property
    def data(self) -> torch.Tensor:
        """As of any tensor."""
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        torch.Tensor.data.__set__(self, value)
        self.block, self.place = value.block, value.place

    @unseen
    def __repr__(self, *, tensor_contents: object = None) -> str:
        text = f"{repr(self.detach().cpu())[:-1]}, device='{self.device}'"
        if self.grad_fn is not None:
            text += f", grad_fn=<{self.grad_fn.name().removesuffix('()')}>"
        elif self.requires_grad:
            text += ", requires_grad=True"
        return ("Parameter containing:\n" if getattr(self, "_is_param", False) else "") + text + ")"

    @unseen
    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else str.__format__(repr(self), spec)

    @unseen
    def tolist(self) -> Any:
        """Wait, and return the values as numbers in nested lists."""
        return self.detach().cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Refused unless `force`, as for a tensor on a GPU."""
        if force:
            return self.detach().cpu().numpy()
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
            "host memory first."
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    def __deepcopy__(self, memo: dict[int, Any]) -> SimulatedTensor:
        copied: SimulatedTensor | None = memo.get(id(self))
        if copied is not None:
            return copied
        copied = self.detach().clone()
        if getattr(self, "_is_param", False):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        else:
            copied.requires_grad_(self.requires_grad)
        if self.grad is not None:
            copied.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        values = self.detach().cpu().requires_grad_(self.requires_grad)  # what is saved comes back on the CPU
        if getattr(self, "_is_param", False):
            values = torch.nn.Parameter(values, self.requires_grad)
        return values.__reduce_ex__(protocol)
